/** The difference of two versions of a function: their settings, and their files by lines. */
import { useState } from 'preact/hooks';
import { api, content, type Schemas } from '../api/client';
import { useLoad } from '../api/load';
import { ErrorNotice, Loading } from '../components/controls';
import { Difference } from '../components/difference';
import { visible } from '../format';

type Version = Schemas['FunctionVersion'];

interface Props {
  id: string;
  versions: string[];
  /** True if the caller may read the files. */
  showsFiles: boolean;
}

export function VersionDifference({ id, versions, showsFiles }: Props) {
  const [from, setFrom] = useState(versions[1] ?? '');
  const [to, setTo] = useState(versions[0] ?? '');
  const compared = useLoad(async () => {
    const version = (name: string) => content(api.GET('/functions/{id}/{version}', { params: { path: { id, version: name } } }));
    return from === '' ? undefined : Promise.all([version(from), version(to)]);
  }, [id, from, to]);
  if (versions.length < 2) {
    return null;
  }
  const choice = (label: string, value: string, set: (version: string) => void) => (
    <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
      {versions.map((version) => (
        <option key={version} value={version}>
          {version}
        </option>
      ))}
    </select>
  );
  const [files, settings] = compared.data === undefined ? [[], []] : [changedFiles(...compared.data), changedSettings(...compared.data)];
  return (
    <section>
      <h3>
        Difference from {choice('From', from, setFrom)} to {choice('To', to, setTo)}
      </h3>
      <ErrorNotice error={compared.error} />
      <ul>
        {files.map((file) => (
          <li key={file.path}>
            {visible(file.path)} {file.change} {showsFiles && <FileLines key={`${from} ${to}`} id={id} file={file} from={from} to={to} />}
          </li>
        ))}
        {settings.map((line) => (
          <li key={line}>{visible(line)}</li>
        ))}
        {compared.data !== undefined && files.length + settings.length === 0 && <li>None</li>}
      </ul>
    </section>
  );
}

interface ChangedFile {
  path: string;
  change: 'is new' | 'is gone' | 'has changed';
}

function changedFiles(from: Version, to: Version): ChangedFile[] {
  const before = new Map(from.files.map((file) => [file.path, file.digest]));
  const after = new Map(to.files.map((file) => [file.path, file.digest]));
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((path) => {
    const [one, other] = [before.get(path), after.get(path)];
    if (one === other) {
      return [];
    }
    return [{ path, change: one === undefined ? 'is new' : other === undefined ? 'is gone' : 'has changed' }];
  });
}

function changedSettings(from: Version, to: Version): string[] {
  return (['language', 'kind', 'limits', 'environment', 'network', 'price', 'tests'] as const).flatMap((name) => {
    const [one, other] = [JSON.stringify(from[name]), JSON.stringify(to[name])];
    return one === other ? [] : [`${name}: ${one} → ${other}`];
  });
}

/** The lines of a changed file, once they are opened. */
function FileLines({ id, file, from, to }: { id: string; file: ChangedFile; from: string; to: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="link" aria-expanded={open} aria-label={`Lines of ${visible(file.path)}`} onClick={() => setOpen(!open)}>
        Lines
      </button>
      {open && <LoadedLines id={id} file={file} from={from} to={to} />}
    </>
  );
}

function LoadedLines({ id, file: { path, change }, from, to }: { id: string; file: ChangedFile; from: string; to: string }) {
  const texts = useLoad(async () => {
    const text = async (version: string) => {
      const params = { path: { id, version }, query: { path } };
      return (await content(api.GET('/functions/{id}/{version}/file', { params }))).text;
    };
    const none = Promise.resolve('');
    return Promise.all([change === 'is new' ? none : text(from), change === 'is gone' ? none : text(to)]);
  }, [id, path, from, to]);
  if (texts.data === undefined) {
    return <Loading error={texts.error} retry={texts.reload} />;
  }
  const [before, after] = texts.data;
  if (before === undefined || after === undefined) {
    return <p class="muted">The file is not a text.</p>;
  }
  return <Difference before={before} after={after} label={`Difference of ${visible(path)}`} />;
}
