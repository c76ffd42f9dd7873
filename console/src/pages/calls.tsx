import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { api, type AuditRecord, type Caller, content } from '../api/client';
import { useConnected, useEvent } from '../api/events';
import { useLoad } from '../api/load';
import { Empty, ErrorNotice, Facts, Loading, PageHead, State } from '../components/controls';
import { Json, Name } from '../components/text';
import { bytes, dateTime, milliseconds, visible } from '../format';
import { href, navigate, type Route } from '../router';

/** Records that are kept on the page; older ones are in the next page of the trail. */
const MAX_ROWS = 500;
const PAGE = 100;

type Filters = { name?: string; handler?: string; principal?: string; outcome?: string; action?: string; since?: string };

const SPANS: [string, number][] = [
  ['15 minutes', 15],
  ['1 hour', 60],
  ['1 day', 1440],
  ['7 days', 10_080],
];

function filtersOf(route: Route): Filters {
  const value = (name: string) => route.query.get(name) ?? undefined;
  const filters = { name: value('name'), handler: value('handler'), principal: value('principal'), outcome: value('outcome'), action: value('action') };
  return Object.fromEntries(Object.entries(filters).filter(([, text]) => text !== undefined));
}

function sinceOf(route: Route): { since?: string } {
  const minutes = Number(route.query.get('minutes'));
  return minutes > 0 ? { since: new Date(Date.now() - minutes * 60_000).toISOString() } : {};
}

export function CallsPage({ route, caller }: { route: Route; caller: Caller }) {
  if (!caller.access.admin) {
    return <Empty>This key lacks the scope `admin`, which reads the audit trail.</Empty>;
  }
  return <Calls route={route} traceUrl={caller.traceUrl} />;
}

function Calls({ route, traceUrl }: { route: Route; traceUrl: string | undefined }) {
  const filters = filtersOf(route);
  const inputs = route.query.toString();
  const [live, setLive] = useState<AuditRecord[]>([]);
  const [older, setOlder] = useState<{ records: AuditRecord[]; next: number | undefined }>();
  const connected = useConnected();
  const page = useLoad(async () => {
    const query = { ...filters, ...sinceOf(route), limit: PAGE };
    const answer = await content(api.GET('/audit', { params: { query } }));
    // Those that have arrived meanwhile are in the page.
    setLive([]);
    setOlder(undefined);
    return answer;
  }, [inputs]);
  useEvent('record', (data) => {
    const record = JSON.parse(data) as AuditRecord;
    if (Object.entries(filters).every(([name, value]) => record[name as keyof AuditRecord] === value)) {
      setLive((before) => [record, ...before].slice(0, MAX_ROWS));
    }
  });
  useEvent('missed', page.reload);
  if (page.data === undefined) {
    return <Loading error={page.error} retry={page.reload} />;
  }
  const records = distinct([...live, ...page.data.records, ...(older?.records ?? [])]);
  const next = older === undefined ? page.data.next : older.next;
  const more = async () => {
    const query = { ...filters, ...sinceOf(route), limit: PAGE, ...(next === undefined ? {} : { before: next }) };
    const answer = await content(api.GET('/audit', { params: { query } }));
    setOlder({ records: [...(older?.records ?? []), ...answer.records], next: answer.next });
  };
  return (
    <>
      <PageHead title="Calls">
        <State kind={connected ? 'good' : 'off'}>{connected ? 'live' : 'not live'}</State>
      </PageHead>
      <FilterBar route={route} />
      <ErrorNotice error={page.error} retry={page.reload} />
      {records.length === 0 ? (
        <Empty>No record matches. Records appear a moment after a call has ended.</Empty>
      ) : (
        <RecordTable records={records} traceUrl={traceUrl} />
      )}
      {next !== undefined && (
        <button type="button" onClick={() => void more()}>
          Older records
        </button>
      )}
    </>
  );
}

/** A record that arrived while its page was read is in both. */
function distinct(records: AuditRecord[]): AuditRecord[] {
  const known = new Set<string>();
  return records.filter((record) => {
    const id = keyOf(record);
    const isNew = !known.has(id);
    known.add(id);
    return isNew;
  });
}

function keyOf(record: AuditRecord): string {
  return record.requestId === undefined
    ? `${record.time} ${record.action} ${record.name}`
    : `${record.requestId} ${record.time}`;
}

function FilterBar({ route }: { route: Route }) {
  const set = (name: string, value: string) => {
    const query = Object.fromEntries(route.query);
    navigate(href(['calls'], { ...query, [name]: value }), { replace: true });
  };
  const field = (name: string, label: string) => (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={route.query.get(name) ?? ''}
      onChange={(event) => set(name, event.currentTarget.value.trim())}
    />
  );
  return (
    <div class="filters">
      <select
        aria-label="Action"
        value={route.query.get('action') ?? ''}
        onChange={(event) => set('action', event.currentTarget.value)}
      >
        <option value="">Calls and actions</option>
        <option value="call">Calls</option>
        {ACTIONS.map((action) => (
          <option key={action} value={action}>
            {action.replaceAll('_', ' ')}
          </option>
        ))}
      </select>
      {field('name', 'Tool or object')}
      {field('handler', 'Handler')}
      {field('principal', 'Id of a key')}
      {field('outcome', 'Outcome')}
      <select
        aria-label="Time"
        value={route.query.get('minutes') ?? ''}
        onChange={(event) => set('minutes', event.currentTarget.value)}
      >
        <option value="">Any time</option>
        {SPANS.map(([label, minutes]) => (
          <option key={label} value={String(minutes)}>
            Last {label}
          </option>
        ))}
      </select>
    </div>
  );
}

const ACTIONS = [
  'key_created',
  'key_revoked',
  'handler_refreshed',
  'handler_restarted',
  'handler_disabled',
  'session_started',
  'session_ended',
  'tool_changed',
  'tool_added',
  'tool_accepted',
  'function_saved',
  'function_published',
  'function_deleted',
  'log_changed',
  'records_lost',
  'records_removed',
];

function RecordTable({ records, traceUrl }: { records: AuditRecord[]; traceUrl: string | undefined }) {
  const [open, setOpen] = useState<string>();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Records">
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Tool or object</th>
            <th scope="col">Handler</th>
            <th scope="col">Key</th>
            <th scope="col">Outcome</th>
            <th scope="col" class="num">Duration</th>
            <th scope="col" class="num">Arguments</th>
          </tr>
        </thead>
        <tbody>
          {records.map((record) => {
            const id = keyOf(record);
            const isOpen = id === open;
            return (
              <Fragment key={id}>
                <tr class={isOpen ? 'open' : ''}>
                  <td class="nowrap">
                    <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(isOpen ? undefined : id)}>
                      {dateTime(record.time)}
                    </button>
                  </td>
                  <td>
                    {record.action !== 'call' && <span class="tag">{record.action.replaceAll('_', ' ')}</span>}{' '}
                    <Name>{record.name}</Name>
                  </td>
                  <td>{record.handler !== undefined && <Name limit={60}>{record.handler}</Name>}</td>
                  <td>
                    <Name limit={60}>{record.keyName ?? record.principal ?? record.address ?? ''}</Name>
                  </td>
                  <td>
                    {record.outcome !== undefined && (
                      <State kind={record.outcome === 'ok' ? 'good' : 'bad'}>{record.outcome}</State>
                    )}
                  </td>
                  <td class="num">{milliseconds(record.durationMs)}</td>
                  <td class="num">{bytes(record.argumentsBytes)}</td>
                </tr>
                {isOpen && (
                  <tr class="detail">
                    <td colSpan={7}>
                      <RecordDetail record={record} traceUrl={traceUrl} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Returns the address of a trace by that of the manifest, which has `{traceId}` for its id. */
function traceAddress(template: string | undefined, traceId: string | undefined): string | undefined {
  if (template === undefined || traceId === undefined) {
    return undefined;
  }
  const address = template.replaceAll('{traceId}', encodeURIComponent(traceId));
  return URL.canParse(address) && /^https?:$/.test(new URL(address).protocol) ? address : undefined;
}

function RecordDetail({ record, traceUrl }: { record: AuditRecord; traceUrl: string | undefined }) {
  const trace = traceAddress(traceUrl, record.traceId);
  const isTool = record.action === 'call' && record.kind === 'tool' && record.handler !== undefined;
  const given = record.arguments === undefined ? undefined : JSON.stringify(record.arguments);
  return (
    <div class="detail-body">
      <div class="actions">
        {isTool && <a href={href(['tools', record.name], { arguments: given })}>Repeat</a>}
        {record.principal !== undefined && <a href={href(['calls'], { principal: record.principal })}>Calls of this key</a>}
        <a href={href(['calls'], { name: record.name })}>Same object</a>
        {trace !== undefined && (
          <a href={trace} target="_blank" rel="noopener noreferrer">
            Trace
          </a>
        )}
      </div>
      {isTool && given === undefined && (
        <p class="muted">
          The trail has no arguments to repeat. With <code>audit: {'{arguments: redacted}'}</code> in the manifest it has.
        </p>
      )}
      <Facts>
        {[
          ['Key', record.principal && `${visible(record.keyName ?? '')} ${record.principal}`],
          ['Client', record.address && visible(record.address)],
          ['Session', record.session],
          ['Trace', record.traceId && <code key="trace">{record.traceId}</code>],
          ['Request', record.requestId && visible(record.requestId)],
        ]}
      </Facts>
      <details>
        <summary>JSON</summary>
        <Json value={record} />
      </details>
    </div>
  );
}
