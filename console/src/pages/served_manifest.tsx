/** The documents that the gateway serves, each of which can be copied into the form that checks manifests. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../api/client';
import { type Loaded, useAction } from '../api/load';
import { ConfirmButton, ErrorNotice, Loading } from '../components/controls';
import { useRows } from '../components/rows';
import { LongText } from '../components/text';
import { count, visible } from '../format';

type ManifestDocument = Schemas['ManifestDocument'];
export type Manifest = { documents: ManifestDocument[] };

/** A text to check, and the source that it would replace: an empty name for all. */
export interface Draft {
  text: string;
  replaces: string;
}

/** Returns documents as one text. */
export function textOf(documents: ManifestDocument[]): string {
  return documents.map(({ text }) => (text.endsWith('\n') ? text : `${text}\n`)).join('---\n');
}

/** Returns the sources with their documents, in their order. */
export function sourcesOf(documents: ManifestDocument[]): Map<string, ManifestDocument[]> {
  const sources = new Map<string, ManifestDocument[]>();
  for (const document of documents) {
    const ofSource = sources.get(document.source) ?? [];
    sources.set(document.source, ofSource);
    ofSource.push(document);
  }
  return sources;
}

interface Props {
  manifest: Loaded<Manifest>;
  /** True if a copy would replace a text. */
  asks: boolean;
  edit: (draft: Draft) => void;
}

export function ServedManifest({ manifest, asks, edit }: Props) {
  const documents = manifest.data?.documents ?? [];
  const sources = sourcesOf(documents);
  const { rows, end } = useRows([...sources], []);
  return (
    <section>
      <h2>Served manifest</h2>
      {manifest.data === undefined ? (
        <Loading error={manifest.error} retry={manifest.reload} />
      ) : (
        <ErrorNotice error={manifest.error} retry={manifest.reload} />
      )}
      {manifest.data !== undefined && (
        <p class="muted">
          {count(documents.length, 'document')}, without comments. References such as {'${NAME}'} are as written, and [REDACTED] stands
          for values that may be secret.
        </p>
      )}
      {sources.size > 1 && (
        <div class="actions">
          <CopyButton label="Edit a copy of all" asks={asks} edit={() => edit({ text: textOf(documents), replaces: '' })} />
        </div>
      )}
      {rows.map(([source, ofSource]) => (
        <SourceText
          key={source}
          source={source}
          text={textOf(ofSource)}
          isOnly={sources.size === 1}
          asks={asks}
          edit={edit}
        />
      ))}
      {end}
    </section>
  );
}

interface SourceProps {
  source: string;
  text: string;
  isOnly: boolean;
  asks: boolean;
  edit: (draft: Draft) => void;
}

function SourceText({ source, text, isOnly, asks, edit }: SourceProps) {
  const [open, setOpen] = useState(isOnly);
  return (
    <section aria-label={visible(source)}>
      <div class="line">
        <h3 class="prose">
          <bdi>{visible(source)}</bdi>
        </h3>
        <div class="actions">
          <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
            Text
          </button>
          <CopyButton label="Edit a copy" asks={asks} edit={() => edit({ text, replaces: source })} />
        </div>
      </div>
      {open && <LongText pre>{text}</LongText>}
    </section>
  );
}

/** A button that puts a copy into the form, and asks before it replaces a text. */
function CopyButton({ label, asks, edit }: { label: string; asks: boolean; edit: () => void }) {
  const copy = useAction(async () => edit());
  return asks ? (
    <ConfirmButton action={copy} question="Replace the text of the form">
      {label}
    </ConfirmButton>
  ) : (
    <button type="button" onClick={copy.run}>
      {label}
    </button>
  );
}
