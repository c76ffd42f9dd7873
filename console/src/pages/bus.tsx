import { useState } from 'preact/hooks';
import { api, content, type Handler, type Schemas } from '../api/client';
import { useEvent } from '../api/events';
import { useAction, useLoad } from '../api/load';
import { Empty, ErrorNotice, Facts, Field, Loading, PageHead, State } from '../components/controls';
import { useRows } from '../components/rows';
import { LongText, Name } from '../components/text';
import { bytes, count, dateTime, number, visible } from '../format';
import { href } from '../router';
import { PHASES } from './fleet';

type DeadLetter = Schemas['DeadLetters']['messages'][number];

/** The message bus of the gateway. */
export function BusPage() {
  const bus = useLoad(() => content(api.GET('/bus')), []);
  if (bus.data === undefined) {
    return <Loading error={bus.error} retry={bus.reload} />;
  }
  const { enabled, broker, source, group } = bus.data;
  return (
    <>
      <PageHead title="Bus" />
      <ErrorNotice error={bus.error} retry={bus.reload} />
      {enabled ? (
        <>
          <Facts>
            {[
              ['Broker', broker && visible(broker)],
              ['Name in messages', source && visible(source)],
              ['Default group', group && visible(group)],
            ]}
          </Facts>
          <BusHandlers />
          <DeadLetterForm group={group ?? 'toolyard'} />
        </>
      ) : (
        <Empty>
          The gateway has no bus: <code>bus: {'{url: …}'}</code> in the <code>Toolyard</code> document connects a broker.
        </Empty>
      )}
    </>
  );
}

/** The handlers whose tools run at workers. */
function BusHandlers() {
  const fleet = useLoad(() => content(api.GET('/handlers')), []);
  useEvent('handlers', fleet.reload);
  const handlers = (fleet.data?.handlers ?? []).filter((handler) => handler.type === 'bus');
  return (
    <section>
      <h2>Handlers</h2>
      {fleet.data === undefined && <Loading error={fleet.error} retry={fleet.reload} />}
      {fleet.data !== undefined && <ErrorNotice error={fleet.error} retry={fleet.reload} />}
      {fleet.data !== undefined && handlers.length === 0 && <p class="muted">No handler has the type `bus`.</p>}
      {handlers.length > 0 && <HandlerTable handlers={handlers} />}
    </section>
  );
}

function HandlerTable({ handlers }: { handlers: Handler[] }) {
  const { rows, end } = useRows(handlers, []);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Handlers of the bus">
      <table>
        <thead>
          <tr>
            <th scope="col">Handler</th>
            <th scope="col">Phase</th>
            <th scope="col">Endpoint</th>
            <th scope="col" class="num">Tools</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((handler) => (
            <tr key={handler.name}>
              <th scope="row">
                <a href={href(['fleet', handler.name])}>
                  <Name>{handler.name}</Name>
                </a>
              </th>
              <td>
                <State kind={PHASES[handler.phase]}>{handler.phase}</State>
              </td>
              <td>
                <Name>{handler.endpoint}</Name>
              </td>
              <td class="num">{number(handler.tools)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {end}
    </div>
  );
}

/** Dead letters: messages that no worker could read, or that were delivered too often. */
function DeadLetterForm({ group: defaultGroup }: { group: string }) {
  const [topic, setTopic] = useState('tool.invoke');
  const [group, setGroup] = useState(defaultGroup);
  const [limit, setLimit] = useState('100');
  const [found, setFound] = useState<{ messages: DeadLetter[]; limit: number }>();
  const list = useAction(async () => {
    setFound(undefined);
    const query = { topic: topic.trim(), group: group.trim(), limit: Number(limit) };
    const { messages } = await content(api.GET('/bus/dead-letters', { params: { query } }));
    setFound({ messages, limit: query.limit });
  });
  return (
    <section>
      <h2>Dead letters</h2>
      <p class="muted">Messages that no worker could read, or that were delivered too often. They stay at the broker.</p>
      <form
        class="card"
        aria-label="Dead letters"
        onSubmit={(event) => {
          event.preventDefault();
          list.run();
        }}
      >
        <div class="columns">
          <Field id="dead-topic" label="Topic">
            <input id="dead-topic" required value={topic} onInput={(event) => setTopic(event.currentTarget.value)} />
          </Field>
          <Field id="dead-group" label="Group">
            <input id="dead-group" required value={group} onInput={(event) => setGroup(event.currentTarget.value)} />
          </Field>
          <Field id="dead-limit" label="Messages at most">
            <input
              id="dead-limit"
              type="number"
              required
              min={1}
              max={1000}
              value={limit}
              onInput={(event) => setLimit(event.currentTarget.value)}
            />
          </Field>
        </div>
        <button type="submit" class="primary" disabled={list.running} aria-busy={list.running}>
          List
        </button>
        <ErrorNotice error={list.error} />
      </form>
      {found !== undefined && <DeadLetters {...found} />}
    </section>
  );
}

function DeadLetters({ messages, limit }: { messages: DeadLetter[]; limit: number }) {
  const { rows, end } = useRows(messages, []);
  if (messages.length === 0) {
    return <Empty>The group has no dead letters of this topic.</Empty>;
  }
  return (
    <>
      <p class="muted" role="status">
        {count(messages.length, 'dead letter')}
        {messages.length >= limit && '. There may be newer ones.'}
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="List of dead letters">
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Topic</th>
              <th scope="col">Type</th>
              <th scope="col">Sender</th>
              <th scope="col">Reason</th>
              <th scope="col" class="num">Attempts</th>
              <th scope="col" class="num">Size</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((message, index) => (
              <tr key={index}>
                <td class="nowrap">{dateTime(message.time ?? undefined)}</td>
                <td>
                  <Name>{message.topic}</Name>
                  <div class="hint">
                    <Name>{message.messageId}</Name>
                  </div>
                </td>
                <td>
                  <Name>{message.messageType}</Name>
                </td>
                <td>
                  <Name limit={60}>{message.source}</Name>
                </td>
                <td class="wide">
                  <LongText limit={300}>{message.reason}</LongText>
                </td>
                <td class="num">{message.attempts}</td>
                <td class="num">{bytes(message.bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {end}
    </>
  );
}
