import { useMemo, useRef, useState } from 'preact/hooks';
import { api, type Caller, content, type Schemas } from '../api/client';
import { useAction, useLoad } from '../api/load';
import { ActionButton, Empty, ErrorNotice, Facts, Field, PageHead, State } from '../components/controls';
import { CopyText } from '../components/text';
import { dateTime, visible } from '../format';
import { CheckForm, ProblemList } from './manifest_check';
import { type Draft, ServedManifest, sourcesOf } from './served_manifest';

type ManifestProblem = Schemas['ManifestProblem'];

export function ConfigurationPage({ caller }: { caller: Caller }) {
  if (!caller.access.admin) {
    return <Empty>This key lacks the scope `admin`, which checks manifests.</Empty>;
  }
  return <Configuration />;
}

function Configuration() {
  const manifest = useLoad(() => content(api.GET('/manifest')), []);
  const [draft, setDraft] = useState<Draft>({ text: '', replaces: '' });
  const input = useRef<HTMLTextAreaElement>(null);
  const edit = (copy: Draft) => {
    setDraft(copy);
    input.current?.focus();
  };
  const sources = useMemo(() => [...sourcesOf(manifest.data?.documents ?? []).keys()], [manifest.data]);
  const asks = draft.text !== '';
  // A long manifest is not drawn again with every key in the form.
  const served = useMemo(() => <ServedManifest manifest={manifest} asks={asks} edit={edit} />, [manifest.data, manifest.error, asks]);
  return (
    <>
      <PageHead title="Configuration" />
      <p class="muted">
        A gateway applies its manifest when the file is saved, as a whole or not at all. This page changes nothing: it checks a text
        before you save it.
      </p>
      <LastEdit />
      {served}
      <CheckForm draft={draft} change={setDraft} sources={sources} input={input} />
      <ImportForm />
    </>
  );
}

/** Outcome of the last edit of the manifest. */
function LastEdit() {
  const status = useLoad(() => content(api.GET('/status')), []);
  const edit = status.data?.lastEdit;
  return (
    <section>
      <h2>Last edit</h2>
      <ErrorNotice error={status.error} retry={status.reload} />
      {edit === undefined && status.data !== undefined && <p class="muted">The manifest was not edited since the start.</p>}
      {edit !== undefined && (
        <Facts>
          {[
            ['Time', dateTime(String(edit['time']))],
            [
              'Outcome',
              <State key="outcome" kind={edit['applied'] === true ? 'good' : 'bad'}>
                {edit['applied'] === true ? 'applied' : 'refused, nothing has changed'}
              </State>,
            ],
            ['Message', visible(String(edit['message']))],
          ]}
        </Facts>
      )}
    </section>
  );
}

function ImportForm() {
  const [text, setText] = useState('');
  const [report, setReport] = useState<{ manifest?: string; notes?: string[]; problems: ManifestProblem[] }>();
  const convert = useAction(async () => setReport(await content(api.POST('/manifest/import', { body: { text } }))));
  return (
    <section>
      <h2>Convert the configuration of a client</h2>
      <Field
        id="client-file"
        label="File of the client"
        hint="mcp.json of Cursor, Claude or VS Code, config.toml of Codex, and others. Secrets in it are part of the result."
      >
        <textarea id="client-file" class="code" rows={6} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      <div class="actions">
        <ActionButton action={convert}>Convert</ActionButton>
      </div>
      <ErrorNotice error={convert.error} />
      {report !== undefined && (
        <div role="status">
          {report.manifest !== undefined && <CopyText text={report.manifest} label="Manifest" />}
          <ul>
            {(report.notes ?? []).map((note) => (
              <li key={note}>{visible(note)}</li>
            ))}
          </ul>
          <ProblemList problems={report.problems} text={text} />
        </div>
      )}
    </section>
  );
}
