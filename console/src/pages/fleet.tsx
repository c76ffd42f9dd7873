import { useState } from 'preact/hooks';
import { api, type Caller, content, type Handler, type Series } from '../api/client';
import { useEvent } from '../api/events';
import { useAction, useInterval, useLoad } from '../api/load';
import { Sparkline } from '../components/chart';
import { ActionButton, ConfirmButton, Empty, ErrorNotice, Facts, Loading, PageHead, State } from '../components/controls';
import { useRows } from '../components/rows';
import { LongText, Name } from '../components/text';
import { bytes, count, dateTime, milliseconds, since, visible } from '../format';
import { href, navigate, type Route } from '../router';

/** Memory and restarts change without an event. */
const REFRESH = 15_000;

/** Kind of `State` of each phase. */
export const PHASES = { Ready: 'good', Unavailable: 'bad', Installing: 'busy', Pending: 'busy' } as const;

/** Handlers with a fault come first. */
const ORDER = { Unavailable: 0, Installing: 1, Pending: 2, Ready: 3 };

export function FleetPage({ route, caller }: { route: Route; caller: Caller }) {
  const { admin } = caller.access;
  const fleet = useLoad(() => content(api.GET('/handlers')), []);
  const series = useLoad(
    async () => (admin ? content(api.GET('/series', { params: { query: { minutes: 60 } } })) : undefined),
    [admin],
  );
  useEvent('handlers', fleet.reload);
  useInterval(fleet.reload, REFRESH);
  useInterval(series.reload, 60_000);
  const [filter, setFilter] = useState('');
  if (fleet.data === undefined) {
    return <Loading error={fleet.error} retry={fleet.reload} />;
  }
  const { handlers } = fleet.data;
  const open = route.parts[0];
  const shown = handlers
    .filter((handler) => handler.name.toLowerCase().includes(filter.toLowerCase()))
    .sort((one, other) => ORDER[one.phase] - ORDER[other.phase] || one.name.localeCompare(other.name));
  const ready = handlers.filter((handler) => handler.phase === 'Ready').length;
  const tools = handlers.reduce((sum, handler) => sum + handler.tools, 0);
  return (
    <>
      <PageHead title="Fleet">
        <span class="muted">
          {ready} of {count(handlers.length, 'handler')} ready, {count(tools, 'tool')}
        </span>
        <input
          type="search"
          aria-label="Filter handlers"
          placeholder="Filter"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </PageHead>
      <ErrorNotice error={fleet.error} retry={fleet.reload} />
      {handlers.length === 0 ? (
        <Empty>
          No handler is visible. Add one to the manifest: <code>toolyard add mcp -- npx -y SERVER</code>
        </Empty>
      ) : (
        <FleetTable
          handlers={shown}
          filter={filter}
          open={open}
          series={series.data}
          admin={admin}
          reload={fleet.reload}
        />
      )}
    </>
  );
}

interface TableProps {
  handlers: Handler[];
  filter: string;
  open: string | undefined;
  series: Series | undefined;
  admin: boolean;
  reload: () => void;
}

function FleetTable({ handlers, filter, open, series, admin, reload }: TableProps) {
  const { rows, end } = useRows(handlers, [filter]);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Handlers">
      <table>
        <thead>
          <tr>
            <th scope="col">Handler</th>
            <th scope="col">Phase</th>
            <th scope="col">Type</th>
            <th scope="col" class="num">Tools</th>
            <th scope="col" class="num">Restarts</th>
            <th scope="col" class="num">Memory</th>
            <th scope="col">p95, last hour</th>
            <th scope="col" class="num">For</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((handler) => (
            <HandlerRows
              key={handler.name}
              handler={handler}
              series={series}
              admin={admin}
              isOpen={handler.name === open}
              reload={reload}
            />
          ))}
        </tbody>
      </table>
      {end}
    </div>
  );
}

interface RowProps {
  handler: Handler;
  series: Series | undefined;
  admin: boolean;
  isOpen: boolean;
  reload: () => void;
}

function HandlerRows({ handler, series, admin, isOpen, reload }: RowProps) {
  const { name, phase, lastError, processes = [] } = handler;
  const memory = processes.reduce((sum, process) => sum + (process.memoryBytes ?? 0), 0);
  const restarts = processes.reduce((sum, process) => sum + process.restarts, 0);
  const latency = series?.handlers[name]?.p95 ?? [];
  const latest = latency.findLast((value) => value !== null);
  const toggle = () => navigate(isOpen ? href(['fleet']) : href(['fleet', name]));
  return (
    <>
      <tr class={isOpen ? 'open' : ''}>
        <th scope="row">
          <button type="button" class="link" aria-expanded={isOpen} onClick={toggle}>
            <Name>{name}</Name>
          </button>
          {phase === 'Unavailable' && lastError !== undefined && (
            <div class="cause">{visible(lastError.message.slice(0, 300))}</div>
          )}
          {handler.installation?.line !== undefined && (
            <div class="cause busy">{visible(handler.installation.line.slice(0, 300))}</div>
          )}
        </th>
        <td>
          <State kind={PHASES[phase]}>{phase}</State>
        </td>
        <td>{handler.type}</td>
        <td class="num">
          <a href={href(['tools'], { handler: name })}>{handler.tools}</a>
        </td>
        <td class="num">{processes.length === 0 ? '' : restarts}</td>
        <td class="num">{memory === 0 ? '' : bytes(memory)}</td>
        <td>
          <Sparkline values={latency} label={`95th percentile of ${visible(name)}`} /> {milliseconds(latest)}
        </td>
        <td class="num">{since(handler.since)}</td>
      </tr>
      {isOpen && (
        <tr class="detail">
          <td colSpan={8}>
            <HandlerDetail handler={handler} admin={admin} reload={reload} />
          </td>
        </tr>
      )}
    </>
  );
}

function HandlerDetail({ handler, admin, reload }: { handler: Handler; admin: boolean; reload: () => void }) {
  const { name, lastError, processes = [], installation, changes = [], leftOut = [], unchecked = [] } = handler;
  const path = { params: { path: { name } } };
  const refresh = useAction(async () => void (await content(api.POST('/handlers/{name}/refresh', path)), reload()));
  const restart = useAction(async () => void (await content(api.POST('/handlers/{name}/restart', path)), reload()));
  const disable = useAction(async () => void (await content(api.POST('/handlers/{name}/disable', path)), reload()));
  return (
    <div class="detail-body">
      {admin && (
        <div class="actions">
          <ActionButton action={refresh}>Refresh lists</ActionButton>
          <ActionButton action={restart}>Restart</ActionButton>
          <ConfirmButton action={disable} question="Stop it and withdraw its tools">
            Disable
          </ConfirmButton>
          <a href={href(['calls'], { handler: name })}>Calls</a>
          <a href={href(['tools'], { handler: name })}>Tools</a>
        </div>
      )}
      <ErrorNotice error={refresh.error ?? restart.error ?? disable.error} />
      <Facts>
        {[
          ['Endpoint', <Name key="endpoint">{handler.endpoint}</Name>],
          ['Registry', visible(handler.registry)],
          ['Origin', handler.origin === 'manifest' ? 'manifest' : 'added at run time'],
          ['Protocol', handler.protocol && visible(handler.protocol)],
          ['In this phase since', dateTime(handler.since)],
          [
            'Installation',
            installation && `${installation.launcher}${installation.waiting ? ', waits for others' : ''}`,
          ],
          ['Processes', processes.map((one) => `pid ${one.pid}, ${one.restarts} restarts, ${bytes(one.memoryBytes)}`).join('; ')],
        ]}
      </Facts>
      {lastError !== undefined && (
        <section aria-label="Last error">
          <h3>
            Last error <code>{lastError.code}</code> <span class="muted">{dateTime(lastError.time)}</span>
          </h3>
          <LongText>{lastError.message}</LongText>
          {(lastError.output ?? []).length > 0 && (
            <>
              <h4>Error output of the program</h4>
              <LongText pre>{(lastError.output ?? []).join('\n')}</LongText>
            </>
          )}
        </section>
      )}
      {changes.length > 0 && <Changes handler={name} changes={changes} reload={reload} />}
      <Problems title="Not published" items={leftOut.map((one) => [`${one.kind} ${one.name}`, one.reason])} />
      <Problems title="Arguments are not validated" items={unchecked.map((one) => [one.tool, one.reason])} />
    </div>
  );
}

function Problems({ title, items }: { title: string; items: [string, string][] }) {
  if (items.length === 0) {
    return null;
  }
  return (
    <section>
      <h3>{title}</h3>
      <ul>
        {items.slice(0, 50).map(([name, reason]) => (
          <li key={name}>
            <Name>{name}</Name>: {visible(reason.slice(0, 500))}
          </li>
        ))}
      </ul>
    </section>
  );
}

type Change = NonNullable<Handler['changes']>[number];

function Changes({ handler, changes, reload }: { handler: string; changes: Change[]; reload: () => void }) {
  const accept = useAction(async () => {
    await content(api.POST('/handlers/{name}/accept', { params: { path: { name: handler } }, body: {} }));
    reload();
  });
  return (
    <section>
      <h3>Changed definitions</h3>
      <ul>
        {changes.map((change) => (
          <li key={change.tool}>
            <Name>{change.tool}</Name> changed {dateTime(change.time)}; served: {change.served}
          </li>
        ))}
      </ul>
      <ActionButton action={accept}>Accept all</ActionButton>
      <ErrorNotice error={accept.error} />
    </section>
  );
}
