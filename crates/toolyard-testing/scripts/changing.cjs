// A server on the TypeScript SDK v1 that changes during its calls. Each process on stdio and each session over HTTP has
// a state of its own.
//
// usage: changing.cjs PEERS stdio|http
//
// PEERS is the folder of the installed peers. Over HTTP it prints its URL.

const { createRequire } = require('node:module');
const { createServer } = require('node:http');
const { randomUUID } = require('node:crypto');
const peers = createRequire(`${process.argv[2]}/package.json`);
const { McpServer } = peers('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = peers('@modelcontextprotocol/sdk/server/stdio.js');
const { StreamableHTTPServerTransport } = peers('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { SubscribeRequestSchema, UnsubscribeRequestSchema } = peers('@modelcontextprotocol/sdk/types.js');
const { z } = peers('zod');

const text = (text) => ({ content: [{ type: 'text', text }] });

function changingServer() {
  const capabilities = { resources: { subscribe: true, listChanged: true } };
  const server = new McpServer({ name: 'changing', version: '1' }, { capabilities });
  const subscribed = new Set();
  let count = 0;
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => (subscribed.add(params.uri), {}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => (subscribed.delete(params.uri), {}));
  for (const name of ['counter', 'fence']) {
    server.registerResource(name, `test://${name}`, {}, ({ href }) => ({ contents: [{ uri: href, text: `${count}` }] }));
  }
  server.registerPrompt('greet', {}, () => ({ messages: [] }));
  // The SDK announces each registration.
  server.registerTool('enable', {}, () => {
    const inputSchema = { 'wei[rd]': z.string().optional(), word: z.string() };
    server.registerTool('extra', { inputSchema }, ({ word }) => text(`extra ${word}`));
    server.registerTool('secret', {}, () => text('secret'));
    server.registerPrompt('extra_prompt', {}, () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }] }));
    server.registerResource('note', 'test://note', {}, ({ href }) => ({ contents: [{ uri: href, text: 'a note' }] }));
    return text('enabled');
  });
  // On the stream of the call if `related`, otherwise on that of the session.
  const inputSchema = { uri: z.string(), related: z.boolean().optional() };
  server.registerTool('touch', { inputSchema }, async ({ uri, related }, { sendNotification }) => {
    count += 1;
    if (subscribed.has(uri)) {
      const method = 'notifications/resources/updated';
      await (related ? sendNotification({ method, params: { uri } }) : server.server.sendResourceUpdated({ uri }));
    }
    return text(`${count}`);
  });
  server.registerTool('ask', {}, async () => {
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
    const answer = await server.server.elicitInput({ message: 'Who?', requestedSchema });
    return text(JSON.stringify(answer.content));
  });
  return server;
}

async function body(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text && JSON.parse(text);
}

async function serve() {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (id && !transport) return response.writeHead(404).end();
    if (!transport) {
      const onsessioninitialized = (id) => sessions.set(id, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
      await changingServer().connect(transport);
    }
    await transport.handleRequest(request, response, await body(request));
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}

if (process.argv[3] === 'http') serve();
else changingServer().connect(new StdioServerTransport());
