import { useState } from 'preact/hooks';
import { api, type Caller, content } from '../api/client';
import { useLoad } from '../api/load';
import { Empty, ErrorNotice, Loading, PageHead } from '../components/controls';
import { Name } from '../components/text';
import { dateTime, visible } from '../format';
import { href, type Route } from '../router';
import { DraftForm } from './function_draft';
import { FunctionDetail } from './function_detail';

export function FunctionsPage({ route, caller }: { route: Route; caller: Caller }) {
  const { functions, admin, publish } = caller.access;
  if (!functions && !admin && !publish) {
    return <Empty>This key lacks the scopes `functions` and `publish`, which show hosted functions.</Empty>;
  }
  const id = route.parts[0];
  const canPublish = admin || publish;
  return id === undefined ? <FunctionList canPublish={canPublish} /> : <FunctionDetail key={id} id={id} canPublish={canPublish} />;
}

function FunctionList({ canPublish }: { canPublish: boolean }) {
  const list = useLoad(() => content(api.GET('/functions')), []);
  const [creating, setCreating] = useState(false);
  if (list.data === undefined) {
    return <Loading error={list.error} retry={list.reload} />;
  }
  return (
    <>
      <PageHead title="Functions">
        {canPublish && (
          <button type="button" class="primary" aria-expanded={creating} onClick={() => setCreating(!creating)}>
            Create a function
          </button>
        )}
      </PageHead>
      {creating && <DraftForm />}
      <ErrorNotice error={list.error} retry={list.reload} />
      {list.data.functions.length === 0 && (
        <Empty>
          There are no functions: tools of your own that the gateway runs. <code>toolyard function new --lang py weather</code> begins
          one in a folder.
        </Empty>
      )}
      {list.data.functions.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Function</th>
              <th scope="col">Language</th>
              <th scope="col">Latest</th>
              <th scope="col" class="num">Versions</th>
              <th scope="col">Draft</th>
            </tr>
          </thead>
          <tbody>
            {list.data.functions.map((one) => (
              <tr key={one.id}>
                <th scope="row">
                  <a href={href(['functions', one.id])}>
                    <Name>{one.id}</Name>
                  </a>
                  {one.problem !== undefined && <div class="cause">{visible(one.problem)}</div>}
                </th>
                <td>{one.language}</td>
                <td>{one.latest}</td>
                <td class="num">{one.versions}</td>
                <td>{dateTime(one.draft?.saved)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
