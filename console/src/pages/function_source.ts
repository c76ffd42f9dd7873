/** What a new draft begins with: an example, or an earlier version of the function. */
import { api, content, type Schemas } from '../api/client';

export type Language = Schemas['FunctionProject']['language'];

/** A file with a text. */
export interface TextFile {
  path: string;
  text: string;
}

/** The part of a draft that the console edits, and what it keeps. */
export interface DraftSource {
  language: Language;
  /** Path and text of the file with the handler. */
  handler: TextFile;
  /** The other files, which stay as they are. */
  others: TextFile[];
  kept: Pick<Schemas['FunctionProject'], 'kind' | 'limits' | 'network' | 'price'>;
  /** Parts of the earlier version that the API does not show, so that the draft has none of them. */
  missing: string[];
}

const EXTENSIONS: Record<Language, string> = { python: 'py', javascript: 'js', lua: 'lua' };

const EXAMPLES: Record<Language, string> = {
  python: 'def cortexone_handler(event, context):\n    return {"statusCode": 200, "body": {"event": event}}\n',
  javascript: 'function cortexone_handler(event) {\n  return { statusCode: 200, body: { event } };\n}\n',
  lua: 'function cortexone_handler(event)\n  return {statusCode = 200, body = {event = event}}\nend\n',
};

export const LANGUAGES = Object.keys(EXAMPLES) as Language[];

/** Returns a function that works in this language. */
export function example(language: Language): DraftSource {
  const handler = { path: handlerPath(language), text: EXAMPLES[language] };
  return { language, handler, others: [], kept: { kind: 'function', network: false, price: '0' }, missing: [] };
}

/** Loads a version of a function, or its draft. */
export async function sourceOf(id: string, version: string): Promise<DraftSource> {
  const path = { id, version };
  const shown = await content(api.GET('/functions/{id}/{version}', { params: { path } }));
  const read = (file: string) => content(api.GET('/functions/{id}/{version}/file', { params: { path, query: { path: file } } }));
  const files = await Promise.all(shown.files.map((file) => read(file.path)));
  const texts = files.flatMap(({ path: file, text }) => (text === undefined ? [] : [{ path: file, text }]));
  const { language, kind, limits, network, price } = shown;
  const { seconds, memoryBytes, outputBytes, concurrent } = limits;
  const main = handlerPath(language);
  return {
    language,
    handler: texts.find((file) => file.path === main) ?? { path: main, text: '' },
    others: texts.filter((file) => file.path !== main),
    kept: {
      kind,
      network,
      price,
      limits: { seconds, memoryMiB: Math.floor(memoryBytes / 2 ** 20), outputKiB: Math.floor(outputBytes / 2 ** 10), concurrent },
    },
    missing: [
      ...shown.tests.map((test) => `test case ${test}`),
      ...shown.environment.map((name) => `variable ${name}`),
      ...files.filter((file) => file.text === undefined).map((file) => `file ${file.path}`),
    ],
  };
}

function handlerPath(language: Language): string {
  return `cortexone_function.${EXTENSIONS[language]}`;
}
