/** The draft of a function: the file with its handler, and a test case. */
import { useState } from 'preact/hooks';
import { api, content } from '../api/client';
import { useAction, useLoad } from '../api/load';
import { ErrorNotice, Field, Loading } from '../components/controls';
import { visible } from '../format';
import { navigate, href } from '../router';
import { type DraftSource, example, type Language, LANGUAGES, sourceOf } from './function_source';

/** A form for a draft that begins as a version of the function. */
export function NextDraft({ id, version, saved }: { id: string; version: string; saved: () => Promise<void> }) {
  const source = useLoad(() => sourceOf(id, version), [id, version]);
  if (source.data === undefined) {
    return <Loading error={source.error} retry={source.reload} />;
  }
  return <DraftForm id={id} initial={source.data} saved={saved} />;
}

interface Props {
  /** The function. A new one, if it is missing. */
  id?: string;
  /** What the draft begins with. An example, if it is missing. */
  initial?: DraftSource;
  /** Called after the draft was saved, before the page of the function opens. */
  saved?: () => Promise<void>;
}

export function DraftForm({ id: given, initial, saved }: Props) {
  const [id, setId] = useState(given ?? '');
  const [source, setSource] = useState(initial ?? example('lua'));
  // The event of an MCP server is a request of MCP, which the example is not.
  const [event, setEvent] = useState(initial?.kept.kind === 'mcp' ? '' : '{"name": "Ada"}');
  const [expected, setExpected] = useState('{"statusCode": 200}');
  const [notes, setNotes] = useState('');
  const { language, handler, others, kept, missing } = source;
  const save = useAction(async () => {
    const test = () => ({ name: 'example', event: JSON.parse(event) as never, expect: JSON.parse(expected) as never });
    const tests = event === '' ? [] : [test()];
    const body = { ...kept, language, files: [handler, ...others], tests, ...(notes === '' ? {} : { notes }) };
    await content(api.PUT('/functions/{id}/draft', { params: { path: { id } }, body }));
    await saved?.();
    navigate(href(['functions', id]));
  });
  const write = (text: string) => setSource({ ...source, handler: { ...handler, text } });
  const choose = (next: Language) => {
    const chosen = example(next);
    const text = handler.text === example(language).handler.text ? chosen.handler.text : handler.text;
    setSource({ ...chosen, handler: { ...chosen.handler, text } });
  };
  const problem = event === '' ? undefined : (jsonProblem(event) ?? jsonProblem(expected));
  return (
    <form
      class="card"
      aria-label="Draft"
      onSubmit={(submitted) => {
        submitted.preventDefault();
        save.run();
      }}
    >
      <div class="columns">
        <Field id="function-id" label="Id">
          <input id="function-id" required disabled={given !== undefined} value={id} onInput={(input) => setId(input.currentTarget.value.trim())} />
        </Field>
        <Field id="function-language" label="Language">
          <select
            id="function-language"
            disabled={initial !== undefined}
            value={language}
            onChange={(input) => choose(input.currentTarget.value as Language)}
          >
            {LANGUAGES.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <Field id="function-source" label={handler.path}>
        <textarea id="function-source" class="code" rows={10} spellcheck={false} value={handler.text} onInput={(input) => write(input.currentTarget.value)} />
      </Field>
      {others.length > 0 && <p class="muted">Files that stay as they are: {visible(others.map((file) => file.path).join(', '))}</p>}
      {missing.length > 0 && (
        <div class="notice">
          The console cannot copy these, and the draft lacks them: {visible(missing.join(', '))}. <code>toolyard function publish</code>{' '}
          publishes the whole folder of a function.
        </div>
      )}
      <div class="columns">
        <Field id="function-event" label="Event of the test case" hint="Without an event there is no test case.">
          <textarea id="function-event" class="code" rows={3} value={event} onInput={(input) => setEvent(input.currentTarget.value)} />
        </Field>
        <Field id="function-expected" label="Expected reply" hint="Members that are not named may have any value.">
          <textarea id="function-expected" class="code" rows={3} value={expected} onInput={(input) => setExpected(input.currentTarget.value)} />
        </Field>
      </div>
      <Field id="function-notes" label="Notes">
        <input id="function-notes" value={notes} onInput={(input) => setNotes(input.currentTarget.value)} />
      </Field>
      {problem !== undefined && <div class="problem">{problem}</div>}
      <button type="submit" class="primary" disabled={save.running || id === '' || problem !== undefined}>
        Save the draft
      </button>
      <ErrorNotice error={save.error} />
    </form>
  );
}

function jsonProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return 'The event and the expected reply have to be JSON.';
  }
}
