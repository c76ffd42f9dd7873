import { Fragment } from 'preact';

import { api, content } from '../api/client';
import { useLoad } from '../api/load';
import { Empty, Loading, PageHead } from '../components/controls';
import { useRows } from '../components/rows';
import { Name } from '../components/text';
import { number } from '../format';
import { href } from '../router';

const MODES = {
  all: 'All tools in the list',
  search: 'Search tools only',
  auto: 'Within the budget, else search',
};

export function TokensPage() {
  const sizes = useLoad(() => content(api.GET('/tokens')), []);
  const handlers = [...(sizes.data?.handlers ?? [])].sort((one, other) => other.tokens - one.tokens);
  const { rows, end } = useRows(handlers, []);
  if (sizes.data === undefined) {
    return <Loading error={sizes.error} retry={sizes.reload} />;
  }
  const { lists, disclosure, budget, estimator } = sizes.data;
  const whole = lists.find((list) => list.disclosure === 'all')?.tokens ?? 0;
  const most = Math.max(...handlers.map((handler) => handler.tokens), 1);
  return (
    <>
      <PageHead title="Tokens">
        <span class="muted">estimated by {estimator}</span>
      </PageHead>
      <h2>A model's list, by disclosure</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Disclosure</th>
            <th scope="col" class="num">Tools</th>
            <th scope="col" class="num">Tokens</th>
            <th scope="col" class="num">Saved</th>
          </tr>
        </thead>
        <tbody>
          {lists.map((list) => (
            <tr key={list.disclosure} class={list.disclosure === disclosure ? 'open' : ''}>
              <th scope="row">
                {MODES[list.disclosure]}
                {list.disclosure === disclosure && <span class="tag">in use</span>}
              </th>
              <td class="num">{number(list.tools)}</td>
              <td class="num">{number(list.tokens)}</td>
              <td class="num">{whole > 0 ? `${Math.round((1 - list.tokens / whole) * 100)} %` : ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {budget !== undefined && <p class="muted">The budget of the list is {number(budget)} tokens.</p>}
      {lists.length === 1 && (
        <p class="muted">
          Without search tools, every client reads the whole list. <code>builtins: {'{search: {}}'}</code> in the manifest adds them.
        </p>
      )}
      <h2>Share of each handler in the whole list</h2>
      {handlers.length === 0 && <Empty>This key sees no tools.</Empty>}
      <table>
        <thead>
          <tr>
            <th scope="col">Handler</th>
            <th scope="col" class="num">Tools</th>
            <th scope="col" class="num">Tokens</th>
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((handler) => (
            <Fragment key={handler.name}>
              <tr>
                <th scope="row">
                  <a href={href(['tools'], { handler: handler.name })}>
                    <Name>{handler.name}</Name>
                  </a>
                </th>
                <ShareCells share={handler} most={most} />
              </tr>
              {handler.groups?.map((group) => (
                <tr key={group.name} class="part">
                  <th scope="row">{group.name}</th>
                  <ShareCells share={group} most={most} />
                </tr>
              ))}
            </Fragment>
          ))}
        </tbody>
      </table>
      {end}
    </>
  );
}

function ShareCells({ share, most }: { share: { tools: number; tokens: number }; most: number }) {
  return (
    <>
      <td class="num">{number(share.tools)}</td>
      <td class="num">{number(share.tokens)}</td>
      <td>
        <meter min={0} max={most} value={share.tokens} aria-label={`${share.tokens} tokens`} />
      </td>
    </>
  );
}
