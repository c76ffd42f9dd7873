import { useEffect, useState } from 'preact/hooks';
import { api, type Caller, content, type Key, type McpTool, settleRequests, signInByKey } from '../api/client';
import { startEvents, stopEvents } from '../api/events';
import { useAction, useLoad } from '../api/load';
import { holdPage } from '../api/session';
import { ConfirmButton, Empty, ErrorNotice, Facts, Field, Loading, PageHead, State } from '../components/controls';
import { CopyText, Name } from '../components/text';
import { count, dateTime, visible } from '../format';
import { href } from '../router';

const RIGHTS: [string, string][] = [
  ['rest', 'calls over REST, the status and this console'],
  ['admin', 'keys, the audit trail, handlers, and keys with more scopes than its own'],
  ['functions', 'invoking hosted functions'],
  ['metrics', 'the metrics for Prometheus'],
];

const DAY = 86_400;

export function KeysPage({ caller }: { caller: Caller }) {
  if (!caller.access.admin) {
    return <Empty>This key lacks the scope `admin`, which manages keys.</Empty>;
  }
  return <Keys own={caller.key?.id} />;
}

function Keys({ own }: { own: string | undefined }) {
  const list = useLoad(() => content(api.GET('/keys')), []);
  const [creating, setCreating] = useState(false);
  const [all, setAll] = useState(false);
  if (list.data === undefined) {
    return <Loading error={list.error} retry={list.reload} />;
  }
  const keys = list.data.keys.filter((key) => all || key.valid);
  const hidden = list.data.keys.length - keys.length;
  return (
    <>
      <PageHead title="Keys">
        <button type="button" class="primary" aria-expanded={creating} onClick={() => setCreating(!creating)}>
          Create a key
        </button>
      </PageHead>
      {creating && <NewKeyForm created={list.reload} isFirst={list.data.keys.length === 0} />}
      <ErrorNotice error={list.error} retry={list.reload} />
      {list.data.keys.length === 0 && (
        <Empty>There are no keys: every client that reaches this address has all rights. With the first key, each request needs one.</Empty>
      )}
      <div class="cards">
        {keys.map((key) => (
          <KeyCard key={key.id} data={key} isOwn={key.id === own} reload={list.reload} />
        ))}
      </div>
      {(hidden > 0 || all) && (
        <button type="button" class="link" onClick={() => setAll(!all)}>
          {all ? 'Hide revoked and expired keys' : `Show ${count(hidden, 'revoked or expired key')}`}
        </button>
      )}
    </>
  );
}

function KeyCard({ data, isOwn, reload }: { data: Key; isOwn: boolean; reload: () => void }) {
  const revoke = useAction(async () => {
    await content(api.DELETE('/keys/{id}', { params: { path: { id: data.id } } }));
    reload();
  });
  const state = data.revoked !== undefined ? 'revoked' : data.valid ? 'valid' : 'expired';
  return (
    <article class="card" aria-label={`Key ${visible(data.name)}`}>
      <div class="line">
        <h2>
          <Name>{data.name}</Name>
        </h2>
        <State kind={data.valid ? 'good' : 'off'}>{isOwn ? 'yours' : state}</State>
      </div>
      <p class="scopes">
        {data.scopes.map((scope) => (
          <code key={scope}>{visible(scope)}</code>
        ))}
      </p>
      <SeenTools scopes={data.scopes} />
      <Facts>
        {[
          ['Id', <code key="id">{data.id}</code>],
          ['Created', dateTime(data.created)],
          ['Expires', dateTime(data.expires)],
          ['Revoked', dateTime(data.revoked)],
          ['Rate', data.rate],
          ['Calls', data.calls && <Quota key="calls" name="Calls" limit={data.calls} used={data.used?.calls} />],
          ['Cost', data.cost && <Quota key="cost" name="Cost" limit={data.cost} used={data.used?.cost} />],
          ['Model', data.model && visible(data.model)],
        ]}
      </Facts>
      <div class="actions">
        <a href={href(['calls'], { principal: data.id })}>Calls</a>
        {data.valid && !isOwn && (
          <ConfirmButton action={revoke} question="Revoke it now">
            Revoke
          </ConfirmButton>
        )}
      </div>
      <ErrorNotice error={revoke.error} />
    </article>
  );
}

/** A quota such as `1000/day`, with the part of it that is used. */
function Quota({ name, limit, used }: { name: string; limit: string; used: number | undefined }) {
  if (used === undefined) {
    return <>{limit}</>;
  }
  const most = Number.parseFloat(limit);
  const text = `${Math.round(used * 100) / 100} of ${limit}`;
  return (
    <span class="quota">
      <meter min={0} max={most} high={most * 0.9} value={Math.min(used, most)} aria-label={`${name}: ${text} used`} />
      {text}
    </span>
  );
}

/** The tools that a key with these scopes sees. */
function SeenTools({ scopes }: { scopes: string[] }) {
  const [tools, setTools] = useState<string[]>();
  const inputs = scopes.join(' ');
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setTools(undefined);
    const timer = setTimeout(() => {
      content(api.POST('/keys/tools', { body: { scopes }, signal })).then(
        (answer) => signal.aborted || setTools(answer.tools),
        // Scopes that are being typed are invalid at times.
        () => undefined,
      );
    }, 150);
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [inputs]);
  if (tools === undefined) {
    return null;
  }
  return (
    <details class="seen">
      <summary>This key sees {count(tools.length, 'tool')}</summary>
      <ul>
        {tools.slice(0, 200).map((tool) => (
          <li key={tool}>
            <Name>{tool}</Name>
          </li>
        ))}
        {tools.length > 200 && <li>and {count(tools.length - 200, 'more tool')}</li>}
      </ul>
    </details>
  );
}

function NewKeyForm({ created, isFirst }: { created: () => void; isFirst: boolean }) {
  const [name, setName] = useState('');
  const [rights, setRights] = useState<Set<string>>(new Set(isFirst ? ['admin', 'rest'] : ['rest']));
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [patterns, setPatterns] = useState(isFirst ? 'tools:*' : '');
  const [days, setDays] = useState('');
  const [rate, setRate] = useState('');
  const [calls, setCalls] = useState('');
  const [secret, setSecret] = useState<string>();
  const scopes = [...rights, ...[...chosen].map((tool) => `tools:${tool}`), ...patterns.split(/[\s,]+/).filter(Boolean)];
  const create = useAction(async () => {
    const limits = { ...(rate === '' ? {} : { rate }), ...(calls === '' ? {} : { calls }) };
    const expiry = days === '' ? {} : { expiresIn: Math.round(Number(days) * DAY) };
    const body = { name, scopes, ...limits, ...expiry };
    holdPage(isFirst);
    if (!isFirst) {
      setSecret((await content(api.POST('/keys', { body }))).key);
      created();
      return;
    }
    // With the key, the gateway refuses what it has not answered yet.
    stopEvents();
    await settleRequests();
    try {
      const { key } = await content(api.POST('/keys', { body }));
      setSecret(key);
      if (rights.has('admin')) {
        // From now on this page needs a key, too.
        await signInByKey(key);
        created();
      }
    } catch (error) {
      startEvents();
      throw error;
    }
  });
  if (secret !== undefined) {
    return (
      <section class="card" aria-label="New key">
        <p>
          The key <Name>{name}</Name> is shown only once:
        </p>
        <CopyText text={secret} label="Key" />
      </section>
    );
  }
  const toggle = (right: string) => {
    const next = new Set(rights);
    setRights(next.delete(right) ? next : next.add(right));
  };
  return (
    <form
      class="card"
      aria-label="New key"
      onSubmit={(event) => {
        event.preventDefault();
        create.run();
      }}
    >
      {isFirst && (
        <p class="notice busy">
          With the first key, each request needs one. Give it `admin`, or only the command line of the gateway's machine can create
          further keys.
        </p>
      )}
      <Field id="key-name" label="Name">
        <input id="key-name" required maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </Field>
      <fieldset>
        <legend>Rights</legend>
        {RIGHTS.map(([right, about]) => (
          <label key={right} class="check">
            <input type="checkbox" checked={rights.has(right)} onChange={() => toggle(right)} /> <code>{right}</code>{' '}
            <span class="muted">{about}</span>
          </label>
        ))}
      </fieldset>
      <ToolChoice chosen={chosen} onChange={setChosen} />
      <Field id="key-patterns" label="Further scopes" hint="Patterns such as tools:github/get_*, publish:geo-* or memory:session/*">
        <input id="key-patterns" value={patterns} onInput={(event) => setPatterns(event.currentTarget.value)} />
      </Field>
      <div class="columns">
        <Field id="key-days" label="Expires after days">
          <input id="key-days" inputMode="decimal" value={days} onInput={(event) => setDays(event.currentTarget.value.trim())} />
        </Field>
        <Field id="key-rate" label="Rate" hint="10/s">
          <input id="key-rate" value={rate} onInput={(event) => setRate(event.currentTarget.value.trim())} />
        </Field>
        <Field id="key-calls" label="Calls" hint="1000/day">
          <input id="key-calls" value={calls} onInput={(event) => setCalls(event.currentTarget.value.trim())} />
        </Field>
      </div>
      {scopes.length > 0 && !create.running && <SeenTools scopes={scopes} />}
      <button type="submit" class="primary" disabled={create.running || name.trim() === '' || scopes.length === 0}>
        Create
      </button>
      <ErrorNotice error={create.error} />
    </form>
  );
}

/** Maximum number of tools in the choice; a filter finds the others. */
const CHOICES = 50;

function ToolChoice({ chosen, onChange }: { chosen: Set<string>; onChange: (chosen: Set<string>) => void }) {
  const tools = useLoad(async () => ((await content(api.GET('/tools'))).tools as McpTool[]).map((tool) => tool.name), []);
  const [filter, setFilter] = useState('');
  if (tools.data === undefined) {
    return null;
  }
  const names = tools.data.filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
  const shown = [...chosen, ...names.filter((name) => !chosen.has(name)).slice(0, CHOICES)];
  const toggle = (name: string) => {
    const next = new Set(chosen);
    onChange(next.delete(name) ? next : next.add(name));
  };
  return (
    <fieldset>
      <legend>Tools, prompts and resources</legend>
      <input
        type="search"
        aria-label="Filter tools"
        placeholder={`Filter ${count(tools.data.length, 'tool')}`}
        value={filter}
        onInput={(event) => setFilter(event.currentTarget.value)}
      />
      <div class="choice">
        {shown.map((name) => (
          <label key={name} class="check">
            <input type="checkbox" checked={chosen.has(name)} onChange={() => toggle(name)} /> <Name>{name}</Name>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

