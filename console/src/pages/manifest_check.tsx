/** The form that checks a manifest and compares it with the served one. */
import { Fragment, type RefObject } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { api, content, type Schemas } from '../api/client';
import { useAction } from '../api/load';
import { ErrorNotice, Facts, Field, State } from '../components/controls';
import { Difference } from '../components/difference';
import { count, visible } from '../format';
import { type Draft, textOf } from './served_manifest';

type ManifestProblem = Schemas['ManifestProblem'];
type ManifestDifference = Schemas['ManifestDifference'];

/** A checked text with its problems, or else with its difference. */
interface Report {
  text: string;
  problems: ManifestProblem[];
  handlers: number;
  difference: ManifestDifference | undefined;
  /** The served documents and those of the text, as the gateway writes them. */
  lines: { before: string; after: string };
}

async function check({ text, replaces }: Draft): Promise<Report> {
  const body = { text, ...(replaces === '' ? {} : { replaces }) };
  const [served, { problems, handlers, difference, documents }] = await Promise.all([
    content(api.GET('/manifest')),
    content(api.POST('/manifest/check', { body })),
  ]);
  const before = served.documents.filter(({ source }) => replaces === '' || source === replaces);
  const lines = { before: textOf(before), after: textOf(documents ?? []) };
  return { text, problems, handlers: handlers?.length ?? 0, difference, lines };
}

interface Props {
  draft: Draft;
  change: (draft: Draft) => void;
  sources: string[];
  input: RefObject<HTMLTextAreaElement | null>;
}

const HINT =
  'Variables may have any value here, and files that it refers to are not read. Leave [REDACTED] in a copy as it is: it ' +
  'stands for a value that only the file has.';

export function CheckForm({ draft, change, sources, input }: Props) {
  const [report, setReport] = useState<Report>();
  const action = useAction(async () => {
    setReport(undefined);
    setReport(await check(draft));
  });
  // A long report is not drawn again with every key in the form.
  const shown = useMemo(() => report && <CheckReport report={report} />, [report]);
  return (
    <section>
      <h2>Check a manifest</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          action.run();
        }}
      >
        <Field id="manifest" label="Manifest" hint={HINT}>
          <textarea
            id="manifest"
            ref={input}
            class="code"
            rows={8}
            spellcheck={false}
            value={draft.text}
            onInput={(event) => change({ ...draft, text: event.currentTarget.value })}
          />
        </Field>
        <Field id="manifest-replaces" label="Replaces">
          <select
            id="manifest-replaces"
            value={draft.replaces}
            onChange={(event) => change({ ...draft, replaces: event.currentTarget.value })}
          >
            <option value="">All sources</option>
            {sources.map((source) => (
              <option key={source} value={source}>
                {visible(source)}
              </option>
            ))}
          </select>
        </Field>
        <button type="submit" class="primary" disabled={action.running} aria-busy={action.running}>
          Check
        </button>
        <ErrorNotice error={action.error} />
      </form>
      {shown}
    </section>
  );
}

function CheckReport({ report: { text, problems, handlers, difference, lines } }: { report: Report }) {
  return (
    <>
      <div role="status">
        {problems.length === 0 && <State kind="good">{`no problems: ${count(handlers, 'handler')}`}</State>}
        <ProblemList problems={problems} text={text} />
      </div>
      {difference !== undefined && <ServedDifference difference={difference} lines={lines} />}
    </>
  );
}

function ServedDifference({ difference, lines }: { difference: ManifestDifference; lines: Report['lines'] }) {
  const { added, changed, removed, unchanged, changesSettings } = difference;
  return (
    <section aria-label="Difference">
      <h3>Difference from the served manifest</h3>
      <Facts>
        {[
          ['Added handlers', added.length > 0 && <NameList key="added" names={added} />],
          ['Changed handlers', changed.length > 0 && <NameList key="changed" names={changed} />],
          ['Removed handlers', removed.length > 0 && <NameList key="removed" names={removed} />],
          ['Unchanged', count(unchanged, 'handler')],
        ]}
      </Facts>
      <p>
        {changesSettings
          ? 'The settings change. Settings other than `builtins` and the log filter need a restart.'
          : 'The settings stay as they are.'}
      </p>
      <Difference before={lines.before} after={lines.after} label="Difference by lines" />
      <p class="hint">Changes of values that are shown as [REDACTED] are not part of the difference.</p>
    </section>
  );
}

/** Names of handlers that are shown. */
const MAX_NAMES = 50;

function NameList({ names }: { names: string[] }) {
  return (
    <>
      {names.slice(0, MAX_NAMES).map((name, index) => (
        <Fragment key={name}>
          {index > 0 && ', '}
          <code>{visible(name)}</code>
        </Fragment>
      ))}
      {names.length > MAX_NAMES && ` and ${count(names.length - MAX_NAMES, 'more handler')}`}
    </>
  );
}

/** Problems with the lines that they are in. */
export function ProblemList({ problems, text }: { problems: ManifestProblem[]; text: string }) {
  const lines = text.split('\n');
  return (
    <ul class="problems">
      {problems.map((problem, index) => (
        <li key={index}>
          <strong class="problem">{visible(problem.message)}</strong>
          {problem.expected !== undefined && <span>, expected {visible(problem.expected)}</span>}
          {problem.line !== undefined && (
            <pre tabIndex={0}>{`${problem.line}: ${visible((lines[problem.line - 1] ?? '').slice(0, 300))}`}</pre>
          )}
          {problem.path !== undefined && <code>{visible(problem.path)}</code>}
          {problem.hint !== undefined && <div class="hint">{visible(problem.hint)}</div>}
        </li>
      ))}
    </ul>
  );
}
