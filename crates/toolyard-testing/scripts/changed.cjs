// Clients on the TypeScript SDK v2, of which the first makes calls that change its server. Prints as JSON what each
// client sees and hears.
//
// usage: changed.cjs PEERS CLIENTS CALLS
//
// PEERS is the folder of the installed peers. CLIENTS is a list of {url | command and args, modern, capable, key}, CALLS
// a list of [tool, arguments] that are made after the first client has heard of the changes.

const { createRequire } = require('node:module');
const [, , folder, clients, calls] = process.argv;
const peers = createRequire(`${folder}/package.json`);
const { Client, StreamableHTTPClientTransport } = peers('@modelcontextprotocol/client');
const { StdioClientTransport } = peers('@modelcontextprotocol/client/stdio');

const URIS = ['test://counter', 'test://fence'];

// What one client heard.
class Heard {
  events = [];
  waiters = [];

  add(event) {
    this.events.push(event);
    this.waiters.splice(0).forEach((wake) => wake());
  }

  count(event) {
    return this.events.filter((other) => other === event).length;
  }

  // Waits until the client has heard of an event so many times.
  async until(event, count) {
    const tooLong = () => {
      console.error(`heard ${event} ${this.count(event)} times instead of ${count}: ${this.events}`);
      process.exit(1);
    };
    const limit = setTimeout(tooLong, 20_000);
    while (this.count(event) < count) await new Promise((wake) => this.waiters.push(wake));
    clearTimeout(limit);
  }
}

function transport({ url, command, args, key }) {
  if (command) return new StdioClientTransport({ command, args, env: process.env });
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}

async function connect(description) {
  const { modern, capable } = description;
  const capabilities = capable ? { elicitation: {}, sampling: {}, roots: {} } : {};
  const versionNegotiation = { mode: modern ? { pin: '2026-07-28' } : 'legacy' };
  const client = new Client({ name: 'changed', version: '1' }, { capabilities, versionNegotiation });
  const heard = new Heard();
  for (const list of ['tools', 'prompts', 'resources']) {
    client.setNotificationHandler(`notifications/${list}/list_changed`, () => heard.add(list));
  }
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.add(params.uri));
  if (capable) {
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'me' } }));
  }
  await client.connect(transport(description));
  const resourceSubscriptions = URIS;
  if (modern) {
    const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
    await client.listen({ ...lists, resourceSubscriptions });
  } else {
    for (const uri of URIS) await client.subscribeResource({ uri });
  }
  // Each subscription is confirmed by an update.
  for (const uri of URIS) await heard.until(uri, 1);
  return { client, heard };
}

async function lists({ client }) {
  const cacheMode = 'refresh';
  const tools = await client.listTools({}, { cacheMode });
  const { prompts } = await client.listPrompts({}, { cacheMode });
  const { resources } = await client.listResources({}, { cacheMode });
  const names = { tools: tools.tools, prompts, resources };
  for (const list of Object.keys(names)) names[list] = names[list].map(({ name, uri }) => uri ?? name).sort();
  return { ...names, scope: tools.cacheScope ?? null };
}

const attempt = async (result) => {
  try {
    const { content, isError } = await result;
    return (isError ? 'error: ' : '') + content[0].text;
  } catch (error) {
    return `error: ${error.message}`;
  }
};

// Updates the fence in a call of this client, and waits until it has heard of it: all earlier news have arrived.
async function fence({ client, heard }) {
  const before = heard.count('test://fence');
  await client.callTool({ name: 'touch', arguments: { uri: 'test://fence' } });
  await heard.until('test://fence', before + 1);
}

async function main() {
  const all = [];
  for (const description of JSON.parse(clients)) all.push(await connect(description));
  const [actor] = all;
  for (const each of all) await fence(each);
  for (const each of all) each.heard.events = [];
  const before = await lists(actor);
  await actor.client.callTool({ name: 'enable', arguments: {} });
  for (const list of ['tools', 'prompts', 'resources']) await actor.heard.until(list, 1);
  for (const related of [false, true]) {
    await actor.client.callTool({ name: 'touch', arguments: { uri: 'test://counter', related } });
    await actor.heard.until('test://counter', related ? 2 : 1);
  }
  const reports = [];
  for (const each of all) {
    for (let at = 0; at < 3; at += 1) await fence(each);
    const answers = [];
    for (const [name, args] of JSON.parse(calls)) {
      answers.push(await attempt(each.client.callTool({ name, arguments: args })));
    }
    const { tools, prompts, resources, scope } = await lists(each);
    reports.push({ heard: each.heard.events.filter((event) => event !== 'test://fence'), tools, prompts, resources, scope, answers });
  }
  console.log(JSON.stringify({ before, reports }));
  await Promise.allSettled(all.map(({ client }) => client.close()));
  process.exit(0);
}

main();
