/** Texts of servers, which may be hostile: they are text nodes only, isolated from the direction of what surrounds them. */
import { useState } from 'preact/hooks';
import { visible } from '../format';

/** A short text in one line, which is cut where there is no room. */
export function Name({ children, limit = 200 }: { children: string; limit?: number }) {
  const shown = visible(cut(children, limit));
  return (
    <bdi class="name" title={shown}>
      {shown}
    </bdi>
  );
}

/** A text of any length. Long ones are cut until the reader asks for the rest. */
export function LongText({
  children,
  limit = 20_000,
  pre = false,
}: {
  children: string;
  limit?: number;
  pre?: boolean;
}) {
  const [whole, setWhole] = useState(false);
  const text = visible(whole ? children : cut(children, limit));
  return (
    <>
      {pre ? (
        <pre dir="auto" tabIndex={0}>
          {text}
        </pre>
      ) : (
        <p class="prose" dir="auto">
          {text}
        </p>
      )}
      {!whole && children.length > limit && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {children.length.toLocaleString()} characters
        </button>
      )}
    </>
  );
}

/** Returns the beginning of a text. */
export function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}…`;
}

/** JSON with indentation. */
export function Json({ value }: { value: unknown }) {
  return <LongText pre>{JSON.stringify(value, null, 2) ?? ''}</LongText>;
}

/** A text to copy. */
export function CopyText({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    // Without a secure context there is no clipboard; the text can be selected.
    void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  };
  return (
    <div class="copy">
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <button type="button" onClick={copy} disabled={navigator.clipboard === undefined}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}
