import { api, type Caller, content } from '../api/client';
import { useLoad } from '../api/load';
import { Empty, Facts, Loading, PageHead, State } from '../components/controls';
import { visible } from '../format';

export function SandboxPage({ caller }: { caller: Caller }) {
  if (!caller.access.admin) {
    return <Empty>This key lacks the scope `admin`, which sees the sandbox.</Empty>;
  }
  return <Sandbox />;
}

function Sandbox() {
  const sandbox = useLoad(() => content(api.GET('/sandbox')), []);
  if (sandbox.data === undefined) {
    return <Loading error={sandbox.error} retry={sandbox.reload} />;
  }
  const { isolation, level, ready, layers } = sandbox.data;
  return (
    <>
      <PageHead title="Sandbox">
        <State kind={ready ? 'good' : 'bad'}>{ready ? 'ready' : 'cannot run programs'}</State>
      </PageHead>
      <p class="muted">The isolation of functions and scripts, which are untrusted programs.</p>
      <Facts>
        {[
          ['Required by the manifest', isolation],
          ['Supported by this machine', level],
        ]}
      </Facts>
      <table>
        <thead>
          <tr>
            <th scope="col">Layer</th>
            <th scope="col">State</th>
            <th scope="col">Reason and remedy</th>
          </tr>
        </thead>
        <tbody>
          {layers.map((layer) => (
            <tr key={layer.name}>
              <th scope="row">{layer.name}</th>
              <td>
                <State kind={layer.enforced ? 'good' : 'bad'}>{layer.enforced ? 'enforced' : 'missing'}</State>
              </td>
              <td>
                {visible(layer.missing ?? '')} {visible(layer.hint ?? '')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
