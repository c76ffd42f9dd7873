import { api, type Caller, content, type Schemas } from '../api/client';
import { useLoad } from '../api/load';
import { Facts, Loading, PageHead } from '../components/controls';
import { dateTime, number, visible } from '../format';

type Peer = NonNullable<Schemas['Status']['cluster']>[number];

function peerText({ address, version, started }: Peer): string {
  return `${visible(address)} ${visible(version)}, started ${dateTime(started)}`;
}

export function AboutPage({ caller }: { caller: Caller }) {
  const status = useLoad(() => content(api.GET('/status')), []);
  const sees = caller.access.rest || caller.access.admin;
  if (sees && status.data === undefined) {
    return <Loading error={status.error} retry={status.reload} />;
  }
  const { data } = status;
  const rights = Object.entries(caller.access).filter(([, granted]) => granted);
  return (
    <>
      <PageHead title="About" />
      <Facts>
        {[
          ['Version', caller.version],
          ['Phase', data?.phase],
          ['Handlers', data && number(data.handlers.length)],
          ['Tools', data && number(data.discoveredToolsCount)],
          ['Addresses', data?.listeners?.map((one) => `${one.protocol} ${one.address}`).join(', ')],
          ['Store', data?.store && visible(data.store)],
          ['Cluster', data?.cluster?.map(peerText).join('; ')],
          ['Your key', caller.key ? `${visible(caller.key.name)} ${caller.key.id}` : 'none is needed'],
          ['It may use', rights.map(([right]) => right).join(', ')],
          ['Last edit of the manifest', data?.lastEdit && visible(`${data.lastEdit['time']}: ${data.lastEdit['message']}`)],
        ]}
      </Facts>
      <h2>Conditions</h2>
      <table>
        <tbody>
          {(data?.conditions ?? []).map((condition) => (
            <tr key={String(condition['type'])}>
              <th scope="row">{String(condition['type'])}</th>
              <td>{String(condition['status'])}</td>
              <td>{visible(String(condition['message']))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        <a href={new URL('api/v1/openapi.json', document.baseURI).href}>Description of the REST API</a> ·{' '}
        <a href={new URL('licences.txt', document.baseURI).href}>Licences of the console's libraries</a>
      </p>
    </>
  );
}
