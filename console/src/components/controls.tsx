/** Buttons, notices and other small parts of pages. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiError } from '../api/client';
import type { Action } from '../api/load';
import { visible } from '../format';

export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <header class="page-head">
      <h1>{title}</h1>
      <div class="tools">{children}</div>
    </header>
  );
}

/** The error of a request, with what can be done about it. */
export function ErrorNotice({ error, retry }: { error: ApiError | undefined; retry?: () => void }) {
  if (error === undefined) {
    return null;
  }
  return (
    <div class="notice bad" role="alert">
      <strong>{error.code}</strong> <bdi>{visible(error.message)}</bdi>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What a page shows before its data has arrived, or instead of it. */
export function Loading({ error, retry }: { error: ApiError | undefined; retry: () => void }) {
  return error === undefined ? (
    <p class="muted" aria-busy="true">
      Loading…
    </p>
  ) : (
    <ErrorNotice error={error} retry={retry} />
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function ActionButton({
  action,
  children,
  label,
  primary = false,
}: {
  action: Action;
  children: ComponentChildren;
  label?: string;
  primary?: boolean;
}) {
  return (
    <button
      type="button"
      class={primary ? 'primary' : ''}
      aria-label={label}
      aria-busy={action.running}
      disabled={action.running}
      onClick={action.run}
    >
      {children}
    </button>
  );
}

/** A button for what cannot be undone: it asks once more in its own place. */
export function ConfirmButton({
  action,
  children,
  question,
}: {
  action: Action;
  children: ComponentChildren;
  question: string;
}) {
  const [asking, setAsking] = useState(false);
  if (!asking) {
    return (
      <button type="button" disabled={action.running} onClick={() => setAsking(true)}>
        {children}
      </button>
    );
  }
  const confirm = () => {
    setAsking(false);
    action.run();
  };
  return (
    <span class="confirm" role="group" aria-label={question}>
      <button type="button" class="danger" onClick={confirm} ref={(button) => button?.focus()}>
        {question}
      </button>
      <button type="button" onClick={() => setAsking(false)}>
        Keep
      </button>
    </span>
  );
}

/** A state in a word and a colour, which is never the only sign. */
export function State({ kind, children }: { kind: 'good' | 'bad' | 'busy' | 'off'; children: string }) {
  return (
    <span class={`state ${kind}`}>
      <span aria-hidden="true" class="dot" />
      {children}
    </span>
  );
}

/** Pairs of a name and a value. Values that are absent are left out. */
export function Facts({ children }: { children: [string, ComponentChildren][] }) {
  const present = children.filter(([, value]) => value !== undefined && value !== '' && value !== false);
  return (
    <dl class="facts">
      {present.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A field of a form with its label, description and problem. */
export function Field({
  id,
  label,
  hint,
  problem,
  children,
}: {
  id: string;
  label: ComponentChildren;
  hint?: ComponentChildren;
  problem?: string | undefined;
  children: ComponentChildren;
}) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint !== undefined && (
        <div class="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {problem !== undefined && (
        <div class="problem" id={`${id}-problem`}>
          {problem}
        </div>
      )}
    </div>
  );
}
