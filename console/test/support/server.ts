/**
 * An MCP server on standard input and output, for the tests: `node server.ts KIND TOOLS`. `plain` has tools with all kinds
 * of arguments and results, `hostile` puts markup, scripts and invisible characters wherever a text may be, and `failing`
 * ends with a reason.
 */
import { createInterface } from 'node:readline';

const [kind = 'plain', count = '10'] = process.argv.slice(2);

/** A picture of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

/** Markup that sets `window.hacked` if a page renders it. */
export const MARKUP =
  '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><a href="javascript:window.hacked=1">x</a>';

/** Text that would be shown as `exe.png` after an override of its direction. */
const BIDI = 'gnp\u202Egnp.exe\u202C\u200B\u0007';

interface Tool {
  name: string;
  description?: string;
  inputSchema: unknown;
}

const BOOKING: Tool = {
  name: 'book_flight',
  description: 'Books a flight for a passenger.',
  inputSchema: {
    type: 'object',
    properties: {
      cabin: { type: 'string', enum: ['economy', 'business', 'first'], description: 'Class of the seat' },
      passenger: {
        type: 'object',
        properties: {
          name: { type: 'string', minLength: 1 },
          contact: { type: 'object', properties: { email: { type: 'string', format: 'email' } }, required: ['email'] },
        },
        required: ['name', 'contact'],
      },
      seats: { type: 'integer', minimum: 1, maximum: 9 },
      notes: { type: 'array', items: { type: 'string' } },
    },
    required: ['cabin', 'passenger', 'seats'],
  },
};

const PICTURE: Tool = { name: 'picture', description: 'Returns a picture.', inputSchema: { type: 'object' } };
const REFUSE: Tool = { name: 'refuse', description: 'Reports an error.', inputSchema: { type: 'object' } };

function plainTools(): Tool[] {
  const number = Number(count);
  const numbered = Array.from({ length: Math.max(number - 3, 0) }, (_tool, index) => ({
    name: `tool_${index}`,
    description: `Does the thing of number ${index}, and returns what was done with the text.`,
    inputSchema: { type: 'object', properties: { text: { type: 'string', description: 'Any text' } } },
  }));
  return number === 0 ? [] : [BOOKING, PICTURE, REFUSE, ...numbered].slice(0, number);
}

function hostileTools(): Tool[] {
  const properties = {
    [MARKUP]: { type: 'string', description: MARKUP, title: MARKUP },
    ['__proto__']: { type: 'object', properties: { [BIDI]: { type: 'string', enum: [MARKUP, BIDI] } } },
    constructor: { type: 'array', items: { type: 'string' } },
    loop: { $ref: '#/properties/loop' },
    pattern: { type: 'string', pattern: '(a+)+$' },
  };
  const description = `${MARKUP} ${BIDI} ${'long '.repeat(20_000)}`;
  return [
    { name: 'attack', description, inputSchema: { type: 'object', properties, required: ['__proto__', MARKUP] } },
    { name: 'x'.repeat(64), description: BIDI, inputSchema: { type: 'object' } },
    { name: 'odd', description: MARKUP, inputSchema: { type: ['object'], anyOf: 7, properties: [], required: 'x', $ref: 5 } },
  ];
}

const tools = kind === 'hostile' ? hostileTools() : plainTools();

function result(name: string, given: unknown): unknown {
  if (kind === 'hostile') {
    return {
      content: [
        { type: 'text', text: `${MARKUP} ${BIDI}\n${'x'.repeat(200_000)}` },
        { type: 'image', mimeType: 'image/svg+xml', data: Buffer.from('<svg onload="window.hacked=1"/>').toString('base64') },
        { type: 'image', mimeType: `text/html,${MARKUP}`, data: PIXEL },
        { type: 'resource_link', uri: 'javascript:window.hacked=1', name: MARKUP },
        { type: MARKUP, text: MARKUP },
      ],
      structuredContent: { [MARKUP]: BIDI, __proto__: { hacked: 1 } },
    };
  }
  switch (name) {
    case 'picture':
      return { content: [{ type: 'image', mimeType: 'image/png', data: PIXEL }] };
    case 'refuse':
      return { content: [{ type: 'text', text: 'not today' }], isError: true };
    default:
      return { content: [{ type: 'text', text: `done: ${JSON.stringify(given)}` }], structuredContent: { given } };
  }
}

function answer(method: string, params: Record<string, unknown>): unknown {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params['protocolVersion'] ?? '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: kind, version: '1' },
      };
    case 'tools/list':
      return { tools };
    case 'tools/call':
      return result(String(params['name']), params['arguments']);
    case 'ping':
      return {};
    default:
      return undefined;
  }
}

function serve(): void {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line) as { id?: unknown; method: string; params?: Record<string, unknown> };
    if (id === undefined) {
      return;
    }
    const answered = answer(method, params);
    const body = answered === undefined ? { error: { code: -32601, message: 'method not found' } } : { result: answered };
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
  });
}

if (kind === 'failing') {
  process.stderr.write('reading the settings\nfatal: cannot open /etc/weather.conf: no such file\n');
  process.exitCode = 3;
} else {
  serve();
}
