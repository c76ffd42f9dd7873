import { useEffect, useMemo, useState } from 'preact/hooks';
import { api, ApiError, type Caller, content, type McpTool } from '../api/client';
import { useEvent } from '../api/events';
import { useLoad } from '../api/load';
import { Empty, ErrorNotice, Loading, PageHead } from '../components/controls';
import { useRows } from '../components/rows';
import { Name } from '../components/text';
import { count, visible } from '../format';
import { href, navigate, type Route } from '../router';
import { ToolDetail } from './tool_detail';

/** Pause after the last key before a search. */
const TYPING = 200;

interface ListedTool {
  tool: McpTool;
  handler: string;
  score?: number | undefined;
  /** Lower-case text for the filter. */
  text: string;
}

async function loadTools(): Promise<ListedTool[]> {
  const [list, status] = await Promise.all([content(api.GET('/tools')), content(api.GET('/status'))]);
  const handlers = new Map(status.discoveredTools.map((tool) => [tool.name, tool.handlerName]));
  return (list.tools as McpTool[]).map((tool) => ({
    tool,
    handler: handlers.get(tool.name) ?? '',
    text: `${tool.name} ${tool.description ?? ''}`.toLowerCase(),
  }));
}

export function ToolsPage({ route, caller }: { route: Route; caller: Caller }) {
  const all = useLoad(loadTools, []);
  useEvent('handlers', all.reload);
  const selected = route.parts[0];
  if (!caller.access.rest) {
    return <Empty>This key lacks the scope `rest`, which lists and calls tools.</Empty>;
  }
  if (all.data === undefined) {
    return <Loading error={all.error} retry={all.reload} />;
  }
  const tool = all.data.find((one) => one.tool.name === selected);
  return (
    <div class={selected === undefined ? 'split' : 'split has-detail'}>
      <section class="list" aria-label="Tools">
        <ToolList tools={all.data} route={route} />
        <ErrorNotice error={all.error} retry={all.reload} />
      </section>
      <section class="detail-pane" aria-label="Tool">
        {tool !== undefined && <ToolDetail key={tool.tool.name} tool={tool.tool} handler={tool.handler} route={route} />}
        {tool === undefined && selected !== undefined && <Empty>There is no tool of this name for this key.</Empty>}
        {selected === undefined && <Empty>Select a tool to see its arguments and to call it.</Empty>}
      </section>
    </div>
  );
}

function ToolList({ tools, route }: { tools: ListedTool[]; route: Route }) {
  const [text, setText] = useState(route.query.get('query') ?? '');
  const [ranked, setRanked] = useState(route.query.get('by') === 'search');
  const handler = route.query.get('handler') ?? '';
  const found = useSearch(ranked ? text : '');
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const filtered = useMemo(() => {
    const ofHandler = tools.filter((one) => handler === '' || one.handler === handler);
    return ranked ? ofHandler : ofHandler.filter((one) => words.every((word) => one.text.includes(word)));
  }, [tools, handler, ranked, text]);
  const shown = ranked && text.trim() !== '' ? (found.tools ?? []) : filtered;
  const handlers = useMemo(() => [...new Set(tools.map((one) => one.handler))].sort(), [tools]);
  const { rows, end } = useRows(shown, [text, ranked, handler]);
  const choose = (name: string) => navigate(href(route.parts, { handler: name }), { replace: true });
  return (
    <>
      <PageHead title="Tools">
        <span class="muted" aria-live="polite">
          {shown.length === tools.length ? count(tools.length, 'tool') : `${shown.length} of ${count(tools.length, 'tool')}`}
        </span>
      </PageHead>
      <div class="filters">
        <input
          type="search"
          aria-label={ranked ? 'Search tools' : 'Filter tools'}
          placeholder={ranked ? 'Keywords, as a model searches' : 'Filter by name or description'}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <select aria-label="Order" value={ranked ? 'search' : 'filter'} onChange={(event) => setRanked(event.currentTarget.value === 'search')}>
          <option value="filter">Filter</option>
          <option value="search">Search as a model</option>
        </select>
        <select aria-label="Handler" value={handler} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">All handlers</option>
          {handlers.map((name) => (
            <option key={name} value={name}>
              {visible(name.slice(0, 60))}
            </option>
          ))}
        </select>
      </div>
      <ErrorNotice error={found.error} />
      {tools.length === 0 && <Empty>This key sees no tools.</Empty>}
      <ul class="tool-list">
        {rows.map(({ tool, handler: owner, score }) => (
          <li key={tool.name}>
            <a
              href={href(['tools', tool.name], { handler })}
              aria-current={route.parts[0] === tool.name ? 'true' : undefined}
            >
              <span class="line">
                <Name>{tool.name}</Name>
                <span class="muted">
                  {score !== undefined && <span class="score">{score.toFixed(2)} </span>}
                  <Name limit={60}>{owner}</Name>
                </span>
              </span>
              <span class="about" dir="auto">
                {visible((tool.description ?? '').slice(0, 160))}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {end}
    </>
  );
}

/** Searches as models do. An empty query finds nothing. */
function useSearch(query: string): { tools?: ListedTool[]; error?: ApiError | undefined } {
  const [found, setFound] = useState<{ tools?: ListedTool[]; error?: ApiError }>({});
  useEffect(() => {
    if (query.trim() === '') {
      setFound({});
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { tools } = await content(
          api.GET('/search', { params: { query: { query, limit: 50 } }, signal: controller.signal }),
        );
        setFound({
          tools: tools.map(({ tool, handler, score }) => ({ tool: tool as McpTool, handler, score, text: '' })),
        });
      } catch (error) {
        if (error instanceof ApiError) {
          setFound({ error });
        }
      }
    }, TYPING);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [query]);
  return found;
}
