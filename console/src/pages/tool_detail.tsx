/** One tool: its description, the form of its arguments, and calls of it. */
import { useMemo, useState } from 'preact/hooks';
import { api, content, type McpTool } from '../api/client';
import { useAction } from '../api/load';
import { ErrorNotice, Facts } from '../components/controls';
import { type CallOutcome, Result } from '../components/result';
import { Json, LongText, Name } from '../components/text';
import { number, tokens } from '../format';
import { href, type Route } from '../router';
import { SchemaForm } from '../schema/form';
import { initialValue, isObject, type Json as JsonValue, modelOf } from '../schema/model';
import { validate } from '../schema/validate';

export function ToolDetail({ tool, handler, route }: { tool: McpTool; handler: string; route: Route }) {
  const model = useMemo(() => modelOf(tool.inputSchema ?? {}), [tool]);
  const [value, setValue] = useState<JsonValue | undefined>(() => given(route) ?? initialValue(model) ?? {});
  const [text, setText] = useState<string>();
  const [checked, setChecked] = useState(false);
  const [outcome, setOutcome] = useState<CallOutcome>();
  const problems = useMemo(() => validate(model, value), [model, value]);
  const call = useAction(async () => {
    const start = performance.now();
    setOutcome(undefined);
    const body = { arguments: value as Record<string, never> };
    const result = await content(api.POST('/tools/{name}/call', { params: { path: { name: tool.name } }, body }));
    setOutcome({ result, took: performance.now() - start });
  });
  const textProblem = text === undefined ? undefined : jsonProblem(text);
  const submit = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (problems.size === 0 && textProblem === undefined) {
      call.run();
    }
  };
  const edit = (input: string) => {
    setText(input);
    if (jsonProblem(input) === undefined) {
      setValue(JSON.parse(input) as JsonValue);
    }
  };
  const definition = JSON.stringify(tool);
  return (
    <article>
      <a class="back" href={href(['tools'])}>
        All tools
      </a>
      <h2>
        <Name>{tool.name}</Name>
      </h2>
      <LongText limit={2000}>{tool.description ?? 'The tool has no description.'}</LongText>
      <Facts>
        {[
          ['Handler', <a key="handler" href={href(['fleet', handler])}><Name>{handler}</Name></a>],
          ['In a list', `about ${number(tokens(definition))} tokens`],
          ['Calls', <a key="calls" href={href(['calls'], { name: tool.name })}>in the audit trail</a>],
        ]}
      </Facts>
      <form onSubmit={submit} noValidate>
        <div class="line">
          <h3>Arguments</h3>
          <button
            type="button"
            class="link"
            onClick={() => setText(text === undefined ? JSON.stringify(value, null, 2) : undefined)}
          >
            {text === undefined ? 'Edit as JSON' : 'Edit as a form'}
          </button>
        </div>
        {text === undefined ? (
          <SchemaForm model={model} value={value} path="" problems={checked ? problems : new Map()} onChange={setValue} />
        ) : (
          <textarea
            class="code"
            rows={8}
            aria-label="Arguments as JSON"
            aria-invalid={textProblem !== undefined}
            value={text}
            onInput={(event) => edit(event.currentTarget.value)}
          />
        )}
        {textProblem !== undefined && <div class="problem">{textProblem}</div>}
        {checked && problems.size > 0 && (
          <div class="problem" role="alert">
            {[...problems].map(([path, problem]) => `${path || 'arguments'}: ${problem}`).join('; ')}
          </div>
        )}
        <button type="submit" class="primary" disabled={call.running} aria-busy={call.running}>
          {call.running ? 'Calling…' : 'Call'}
        </button>
      </form>
      <ErrorNotice error={call.error} />
      {outcome !== undefined && <Result outcome={outcome} />}
      <details>
        <summary>Definition</summary>
        <Json value={tool} />
      </details>
    </article>
  );
}

/** Returns the arguments in the address: those of a call to repeat. */
function given(route: Route): JsonValue | undefined {
  const text = route.query.get('arguments');
  return text === null || jsonProblem(text) !== undefined ? undefined : (JSON.parse(text) as JsonValue);
}

function jsonProblem(text: string): string | undefined {
  try {
    return isObject(JSON.parse(text)) ? undefined : 'expected an object';
  } catch {
    return 'not valid JSON';
  }
}
