import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { api, content, type Schemas } from '../api/client';
import { useLoad } from '../api/load';
import { Empty, ErrorNotice, Loading, PageHead } from '../components/controls';
import { useRows } from '../components/rows';
import { Name } from '../components/text';
import { bytes, count, dateTime, number, visible } from '../format';
import { href } from '../router';

type Namespace = Schemas['MemoryNamespaces']['namespaces'][number];
type Entry = Schemas['MemoryEntries']['entries'][number];

/** The namespaces of working memory, with their entries. */
export function MemoryPage() {
  const list = useLoad(() => content(api.GET('/memory')), []);
  if (list.data === undefined) {
    return <Loading error={list.error} retry={list.reload} />;
  }
  const { enabled, truncated, namespaces } = list.data;
  return (
    <>
      <PageHead title="Memory">
        <span class="muted">{count(namespaces.length, 'namespace')}</span>
      </PageHead>
      <p class="muted">The values of working memory belong to the callers, and are not shown.</p>
      <ErrorNotice error={list.error} retry={list.reload} />
      {!enabled && (
        <Empty>
          The gateway has no working memory: <code>builtins: {'{memory: {}}'}</code> in the manifest enables it.
        </Empty>
      )}
      {enabled && namespaces.length === 0 && <Empty>Working memory is empty.</Empty>}
      {namespaces.length > 0 && <NamespaceTable namespaces={namespaces} />}
      {truncated && <p class="muted">There are more namespaces than are listed.</p>}
    </>
  );
}

function NamespaceTable({ namespaces }: { namespaces: Namespace[] }) {
  const [open, setOpen] = useState<string>();
  const { rows, end } = useRows(namespaces, []);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Namespaces">
      <table>
        <thead>
          <tr>
            <th scope="col">Namespace</th>
            <th scope="col">Key</th>
            <th scope="col" class="num">Entries</th>
            <th scope="col" class="num">Size</th>
            <th scope="col">Last save</th>
            <th scope="col">Expires</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => {
            const isOpen = one.namespace === open;
            return (
              <Fragment key={one.namespace}>
                <tr class={isOpen ? 'open' : ''}>
                  <th scope="row">
                    <button
                      type="button"
                      class="link"
                      aria-expanded={isOpen}
                      onClick={() => setOpen(isOpen ? undefined : one.namespace)}
                    >
                      <Name>{one.namespace}</Name>
                    </button>
                  </th>
                  <td>
                    {one.key !== undefined && (
                      <a href={href(['calls'], { principal: one.key.id })}>
                        <Name limit={60}>{one.key.name ?? one.key.id}</Name>
                      </a>
                    )}
                  </td>
                  <td class="num">{number(one.entries)}</td>
                  <td class="num">{bytes(one.bytes)}</td>
                  <td class="nowrap">{dateTime(one.saved)}</td>
                  <td class="nowrap">{dateTime(one.expires)}</td>
                </tr>
                {isOpen && (
                  <tr class="detail">
                    <td colSpan={6}>
                      <Entries namespace={one.namespace} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {end}
    </div>
  );
}

function Entries({ namespace }: { namespace: string }) {
  const list = useLoad(() => content(api.GET('/memory/entries', { params: { query: { namespace } } })), [namespace]);
  if (list.data === undefined) {
    return <Loading error={list.error} retry={list.reload} />;
  }
  const { entries } = list.data;
  return entries.length === 0 ? <Empty>All entries have expired.</Empty> : <EntryTable namespace={namespace} entries={entries} />;
}

function EntryTable({ namespace, entries }: { namespace: string; entries: Entry[] }) {
  const { rows, end } = useRows(entries, [namespace]);
  return (
    <>
      <table aria-label={`Entries of ${visible(namespace)}`}>
        <thead>
          <tr>
            <th scope="col">Entry</th>
            <th scope="col" class="num">Size</th>
            <th scope="col">Saved</th>
            <th scope="col">Expires</th>
            <th scope="col">Category</th>
            <th scope="col">Tags</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((entry) => (
            <tr key={entry.key}>
              <th scope="row">
                <Name>{entry.key}</Name>
              </th>
              <td class="num">{bytes(entry.bytes)}</td>
              <td class="nowrap">{dateTime(entry.saved)}</td>
              <td class="nowrap">{dateTime(entry.expires)}</td>
              <td>{entry.category !== undefined && <Name limit={60}>{entry.category}</Name>}</td>
              <td>
                {entry.tags.map((tag) => (
                  <span key={tag} class="tag">
                    <Name limit={60}>{tag}</Name>
                  </span>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {end}
    </>
  );
}
