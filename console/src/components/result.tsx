/** The result of a call: text, structure and images. Nothing of it is rendered as markup. */
import type { CallResult } from '../api/client';
import { bytes, milliseconds, number, tokens, visible } from '../format';
import { State } from './controls';
import { Json, LongText, Name } from './text';

export interface CallOutcome {
  result: CallResult;
  took: number;
}

/** Images that a browser shows without running anything. */
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** Larger images are not shown. */
const MAX_IMAGE = 8 << 20;

type Content = Record<string, unknown>;

export function Result({ outcome }: { outcome: CallOutcome }) {
  const { result, took } = outcome;
  const text = JSON.stringify(result);
  const structured = result.structuredContent;
  return (
    <section class="result" aria-label="Result">
      <header>
        {result.isError === true ? <State kind="bad">tool error</State> : <State kind="good">ok</State>}
        <span class="muted">
          {milliseconds(took)} · {bytes(new TextEncoder().encode(text).length)} · about {number(tokens(text))} tokens
        </span>
      </header>
      {(result.content ?? []).map((item, index) => (
        <ContentItem key={index} item={item as Content} />
      ))}
      {structured !== undefined && (
        <>
          <h3>Structure</h3>
          <Json value={structured} />
        </>
      )}
      <details>
        <summary>JSON</summary>
        <Json value={result} />
      </details>
    </section>
  );
}

function ContentItem({ item }: { item: Content }) {
  const { type, text, data, mimeType, uri } = item;
  if (type === 'text' && typeof text === 'string') {
    return <LongText pre>{text}</LongText>;
  }
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string') {
    return <Image data={data} mimeType={mimeType} />;
  }
  if (type === 'resource_link' && typeof uri === 'string') {
    return (
      <p>
        Resource <Name>{uri}</Name>
      </p>
    );
  }
  return <Json value={item} />;
}

function Image({ data, mimeType }: { data: string; mimeType: string }) {
  const isShown = IMAGES.has(mimeType) && data.length <= MAX_IMAGE && /^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(data);
  if (!isShown) {
    return (
      <p class="muted">
        An image of type {visible(mimeType.slice(0, 100))} with {bytes(Math.floor(data.length * 0.75))}, which is not shown.
      </p>
    );
  }
  return <img src={`data:${mimeType};base64,${data}`} alt="Result of the tool" />;
}
