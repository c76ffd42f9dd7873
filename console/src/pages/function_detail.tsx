/** A function: its versions, their difference, tests, log, and publication. */
import { useState } from 'preact/hooks';
import { api, ApiError, content, type Schemas } from '../api/client';
import { useAction, useInterval, useLoad } from '../api/load';
import { ActionButton, ConfirmButton, ErrorNotice, Facts, Loading, State } from '../components/controls';
import { Json, LongText, Name } from '../components/text';
import { bytes, dateTime, milliseconds, visible } from '../format';
import { href } from '../router';
import { VersionDifference } from './function_difference';
import { DraftForm, NextDraft } from './function_draft';

type Publication = Schemas['Publication'];
type TestReport = Schemas['TestReport'];
type TestRun = Schemas['TestRun'];
type Bump = 'patch' | 'minor' | 'major';

/** Outcome of the test cases of a draft. */
interface Report {
  title: string;
  tests: TestReport[];
}

/** Returns the outcome of test cases. If some failed, it is the content of an error response. */
async function reportOf<T extends { tests: TestReport[] }>(request: Promise<T>, title: (done: T) => string): Promise<Report> {
  try {
    const done = await request;
    return { title: title(done), tests: done.tests };
  } catch (error) {
    const run = failedRun(error);
    if (run === undefined) {
      throw error;
    }
    return { title: `${run.failed} of ${run.tests.length} test cases failed`, tests: run.tests };
  }
}

function failedRun(error: unknown): TestRun | undefined {
  const body = error instanceof ApiError ? error.body : undefined;
  return typeof body === 'object' && body !== null && 'failed' in body && 'tests' in body ? (body as TestRun) : undefined;
}

export function FunctionDetail({ id, canPublish }: { id: string; canPublish: boolean }) {
  const path = { path: { id } };
  const details = useLoad(() => content(api.GET('/functions/{id}', { params: path })), [id]);
  const [editing, setEditing] = useState(false);
  const [bump, setBump] = useState<Bump>('patch');
  const [report, setReport] = useState<Report>();
  const publish = useAction(async () => {
    setReport(undefined);
    const digest = details.data?.draft?.digest;
    const body = { bump, ...(digest === undefined ? {} : { digest }) };
    const publication = content(api.POST('/functions/{id}/publish', { params: path, body }));
    const title = ({ unchanged, version }: Publication) => (unchanged ? `Unchanged since ${version}` : `Published as ${version}`);
    setReport(await reportOf(publication, title));
    await details.reload();
  });
  const test = useAction(async () => {
    setReport(undefined);
    const run = content(api.POST('/functions/{id}/{version}/test', { params: { path: { id, version: 'draft' } } }));
    setReport(await reportOf(run, () => 'All test cases passed'));
  });
  // What is published is the draft that is shown, so the new one is shown before it can be published.
  const saved = async () => {
    await details.reload();
    setEditing(false);
  };
  if (details.data === undefined) {
    return <Loading error={details.error} retry={details.reload} />;
  }
  const { draft, published, latest, problem, language, kind } = details.data;
  const begin = draft === undefined ? latest : 'draft';
  return (
    <article>
      <a class="back" href={href(['functions'])}>
        All functions
      </a>
      <h1>
        <Name>{id}</Name>
      </h1>
      {problem !== undefined && <div class="notice bad">{visible(problem)}</div>}
      <Facts>
        {[
          ['Language', language],
          ['Kind', kind],
          ['Latest', latest],
          ['Draft', draft && `saved ${dateTime(draft.saved)}, ${bytes(draft.bytes)}`],
        ]}
      </Facts>
      {canPublish && (
        <div class="actions">
          <button type="button" aria-expanded={editing} onClick={() => setEditing(!editing)}>
            Write a draft
          </button>
          {draft !== undefined && !editing && (
            <>
              <ActionButton action={test}>Run the tests</ActionButton>
              <select aria-label="Part of the version to increase" value={bump} onChange={(event) => setBump(event.currentTarget.value as Bump)}>
                <option value="patch">patch</option>
                <option value="minor">minor</option>
                <option value="major">major</option>
              </select>
              <ActionButton action={publish} primary>
                {publish.running ? 'Testing and publishing…' : 'Publish'}
              </ActionButton>
            </>
          )}
        </div>
      )}
      {editing && (begin === undefined ? <DraftForm id={id} saved={saved} /> : <NextDraft id={id} version={begin} saved={saved} />)}
      <ErrorNotice error={details.error} retry={details.reload} />
      <ErrorNotice error={publish.error ?? test.error} />
      {report !== undefined && <Tests title={report.title} tests={report.tests} />}
      <Versions id={id} published={published} canPublish={canPublish} reload={details.reload} />
      {(published.length > 0 || draft !== undefined) && <Try id={id} versions={[...(draft === undefined ? [] : ['draft']), ...published.map((one) => one.version)]} />}
      {canPublish && <Log id={id} />}
    </article>
  );
}

function Tests({ title, tests }: { title: string; tests: TestReport[] }) {
  return (
    <section class="card" role="status">
      <strong>{title}</strong>
      <ul>
        {tests.map((one) => (
          <li key={one.name}>
            <State kind={one.passed ? 'good' : 'bad'}>{one.passed ? 'passed' : 'failed'}</State> <Name>{one.name}</Name>{' '}
            {milliseconds(one.durationMs)} {visible(one.problem ?? '')}
            {!one.passed && one.reply !== undefined && <Json value={one.reply} />}
            {!one.passed && (one.output ?? '') !== '' && <LongText limit={1000}>{one.output ?? ''}</LongText>}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface VersionsProps {
  id: string;
  published: Schemas['FunctionDetails']['published'];
  canPublish: boolean;
  reload: () => void;
}

function Versions({ id, published, canPublish, reload }: VersionsProps) {
  if (published.length === 0) {
    return <p class="muted">Nothing is published yet.</p>;
  }
  return (
    <>
      <h2>Versions</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Published</th>
            <th scope="col">Notes</th>
            <th scope="col" class="num">Size</th>
            <th scope="col">Actions</th>
          </tr>
        </thead>
        <tbody>
          {published.map((one, index) => (
            <tr key={one.version}>
              <th scope="row">
                {one.version}
                {index === 0 && <span class="tag">latest</span>}
              </th>
              <td>{dateTime(one.published)}</td>
              <td>{visible((one.notes ?? '').slice(0, 300))}</td>
              <td class="num">{bytes(one.bytes)}</td>
              <td>
                {canPublish && <Withdraw id={id} version={one.version} before={index === 0 ? published[1]?.version : undefined} reload={reload} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <VersionDifference
        key={published[0]?.version}
        id={id}
        versions={published.map((one) => one.version)}
        showsFiles={canPublish}
      />
    </>
  );
}

/** Withdraws a version. Without the latest one, the one before it is the latest. */
function Withdraw({ id, version, before, reload }: { id: string; version: string; before: string | undefined; reload: () => void }) {
  const withdraw = useAction(async () => {
    await content(api.DELETE('/functions/{id}/{version}', { params: { path: { id, version } } }));
    reload();
  });
  return (
    <>
      <ConfirmButton action={withdraw} question={before === undefined ? `Withdraw ${version}` : `Go back to ${before}`}>
        {before === undefined ? 'Withdraw' : 'Roll back'}
      </ConfirmButton>
      <ErrorNotice error={withdraw.error} />
    </>
  );
}

function Try({ id, versions }: { id: string; versions: string[] }) {
  const [version, setVersion] = useState('latest');
  const [event, setEvent] = useState('{"name": "Ada"}');
  const [reply, setReply] = useState<unknown>();
  const invoke = useAction(async () => {
    setReply(undefined);
    const body = { event: JSON.parse(event) as never };
    const answer = await content(api.POST('/functions/{id}/{version}/invoke', { params: { path: { id, version } }, body }));
    setReply(answer);
  });
  return (
    <section>
      <h2>Try</h2>
      <div class="filters">
        <select aria-label="Version" value={version} onChange={(input) => setVersion(input.currentTarget.value)}>
          {['latest', ...versions].map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        <textarea aria-label="Event" class="code" rows={2} value={event} onInput={(input) => setEvent(input.currentTarget.value)} />
        <ActionButton action={invoke}>Invoke</ActionButton>
      </div>
      <ErrorNotice error={invoke.error} />
      {reply !== undefined && <Json value={reply} />}
    </section>
  );
}

function Log({ id }: { id: string }) {
  const log = useLoad(() => content(api.GET('/functions/{id}/logs', { params: { path: { id } } })), [id]);
  useInterval(log.reload, 10_000);
  const entries = log.data?.entries ?? [];
  return (
    <section>
      <h2>Log</h2>
      <ErrorNotice error={log.error} />
      {entries.length === 0 && <p class="muted">No call yet.</p>}
      {entries.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Version</th>
              <th scope="col">Outcome</th>
              <th scope="col" class="num">Duration</th>
              <th scope="col">Output</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.requestId}>
                <td class="nowrap">{dateTime(entry.time)}</td>
                <td>{entry.version}</td>
                <td>
                  <State kind={entry.outcome === 'ok' ? 'good' : 'bad'}>{entry.outcome}</State>
                </td>
                <td class="num">{milliseconds(entry.durationMs)}</td>
                <td>
                  <LongText limit={300}>{entry.error ?? entry.output ?? ''}</LongText>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
