/** What operators see of a gateway: its manifest, working memory, other agents, the bus, traces and the store. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { checkAccessibility, checkPage, launch, open, screenshot, visit, type WatchedPage } from './support/browser.ts';
import { Gateway, type GatewayOptions } from './support/gateway.ts';

/** Markup of a caller, which is shown as text. */
const MARKUP = '<img src=x onerror="window.hacked=1">';

let browser: Browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

async function withGateway(options: GatewayOptions, run: (gateway: Gateway) => Promise<void>): Promise<void> {
  const gateway = await Gateway.start(options);
  try {
    await run(gateway);
  } finally {
    await gateway.stop();
  }
}

/** Answers requests for a path of the API in place of the gateway. */
async function answer({ page }: WatchedPage, path: string, body: unknown): Promise<void> {
  await page.route(
    (url) => url.pathname === `/api/v1${path}`,
    (route) => route.fulfill({ json: body }),
  );
}

describe('draft of a function', () => {
  async function withDraft(run: (watched: WatchedPage, gateway: Gateway) => Promise<void>): Promise<void> {
    await withGateway({ servers: [['flights', 'plain', 10]] }, async (gateway) => {
      const watched = await open(browser, gateway.url);
      await visit(watched, 'functions', 'Functions');
      await watched.page.getByRole('button', { name: 'Create a function' }).click();
      await watched.page.getByLabel('Id', { exact: true }).fill('greeting');
      await watched.page.getByRole('button', { name: 'Save the draft' }).click();
      await watched.page.getByRole('button', { name: 'Write a draft' }).waitFor();
      await run(watched, gateway);
    });
  }

  /** Replaces the statement of the handler. */
  async function write({ page }: WatchedPage, statement: string): Promise<void> {
    await page.getByRole('button', { name: 'Write a draft' }).click();
    await page.getByLabel('cortexone_function.lua').fill(`function cortexone_handler()\n  ${statement}\nend\n`);
    await page.getByRole('button', { name: 'Save the draft' }).click();
  }

  test('is shown before it can be published', async () => {
    await withDraft(async (watched) => {
      const { page } = watched;
      const publish = page.getByRole('button', { name: 'Publish' });
      await publish.waitFor();
      let release = () => {};
      const released = new Promise<void>((resolve) => (release = resolve));
      await page.route('**/functions/greeting', async (route) => {
        await released;
        await route.continue();
      });
      const request = page.waitForRequest('**/functions/greeting');
      await write(watched, 'return {statusCode = 200, body = {}}');
      await request;
      assert.equal(await publish.count(), 0);
      release();
      await publish.click();
      await page.getByText('Published as 1.0.0').waitFor();
      await checkPage(watched);
    });
  });

  test('begins as the one before it', async () => {
    await withDraft(async (watched, gateway) => {
      const { page } = watched;
      const source = 'function cortexone_handler()\n  return require("reply")\nend\n';
      const files = [
        { path: 'cortexone_function.lua', text: source },
        { path: 'reply.lua', text: 'return {statusCode = 200, body = {}}\n' },
      ];
      const project = { kind: 'function', language: 'lua', files, price: '2', limits: { seconds: 7 }, environment: { PLACE: 'here' } };
      await gateway.api('/functions/greeting/draft', { method: 'PUT', body: { ...project, tests: [{ name: 'first', event: {} }] } });
      await page.getByRole('button', { name: 'Write a draft' }).click();
      const handler = page.getByLabel('cortexone_function.lua');
      await page.getByText('the draft lacks them: test case first, variable PLACE').waitFor();
      await page.getByText('Files that stay as they are: reply.lua').waitFor();
      assert.equal(await handler.inputValue(), source);
      await checkAccessibility(watched);
      await handler.fill(`-- edited\n${source}`);
      await page.getByLabel('Event of the test case').fill('');
      await page.getByRole('button', { name: 'Save the draft' }).click();
      await page.getByRole('button', { name: 'Publish' }).waitFor();
      const draft = (await gateway.api('/functions/greeting/draft')) as Record<string, unknown> & { files: { path: string }[]; limits: { seconds: number } };
      assert.deepEqual(draft.files.map((file) => file.path), ['cortexone_function.lua', 'reply.lua']);
      assert.deepEqual([draft['price'], draft.limits.seconds, draft['tests']], ['2', 7, []]);
      const saved = (await gateway.api('/functions/greeting/draft/file?path=cortexone_function.lua')) as { text: string };
      assert.equal(saved.text, `-- edited\n${source}`);
      await checkPage(watched);
    });
  });

  test('of an MCP server has no event of a function', async () => {
    await withGateway({ servers: [['flights', 'plain', 10]] }, async (gateway) => {
      const files = [{ path: 'cortexone_function.lua', text: 'function cortexone_handler(event)\n  return {}\nend\n' }];
      await gateway.api('/functions/server/draft', { method: 'PUT', body: { kind: 'mcp', language: 'lua', files } });
      const watched = await open(browser, gateway.url);
      const { page } = watched;
      await visit(watched, 'functions/server', 'server');
      await page.getByRole('button', { name: 'Write a draft' }).click();
      assert.equal(await page.getByLabel('Event of the test case').inputValue(), '');
      await page.getByRole('button', { name: 'Save the draft' }).click();
      await page.getByRole('button', { name: 'Publish' }).waitFor();
      assert.equal(((await gateway.api('/functions/server/draft')) as { kind: string }).kind, 'mcp');
      await checkPage(watched);
    });
  });

  test('with failing test cases says which and why', async () => {
    await withDraft(async (watched) => {
      const { page } = watched;
      await write(watched, 'return {statusCode = 500, body = {}}');
      for (const action of ['Run the tests', 'Publish']) {
        await page.getByRole('button', { name: action }).click();
        const report = page.getByRole('status').filter({ hasText: '1 of 1 test cases failed' });
        await report.getByText('failed', { exact: true }).waitFor();
        await report.getByText('statusCode: expected 200, found 500').waitFor();
        await report.getByText('"statusCode": 500').waitFor();
      }
      await page.getByText('Nothing is published yet.').waitFor();
      await checkAccessibility(watched);
    });
  });
});

describe('served manifest', () => {
  test('is shown without secrets, and compared with an edited copy', async () => {
    const env = { API_TOKEN: 'literal-secret' };
    await withGateway({ servers: [['flights', 'plain', 10], ['weather', 'plain', 3]], env }, async (gateway) => {
      const watched = await open(browser, gateway.url);
      const { page } = watched;
      await visit(watched, 'configuration', 'Configuration');
      await page.getByText('API_TOKEN: "[REDACTED]"').waitFor();
      await page.getByRole('button', { name: 'Edit a copy' }).click();
      const form = page.getByLabel('Manifest', { exact: true });
      const copy = await form.inputValue();
      assert.ok(copy.includes('kind: ToolRegistry') && copy.includes('---\n') && copy.includes('kind: Toolyard'), copy);
      assert.match(await page.getByLabel('Replaces').inputValue(), /toolyard\.yaml$/);
      await page.getByRole('button', { name: 'Check', exact: true }).click();
      await page.getByText('no problems: 2 handlers').waitFor();
      const difference = page.getByRole('region', { name: 'Difference', exact: true });
      await difference.getByText('The lines are the same.').waitFor();
      await difference.getByText('The settings stay as they are.').waitFor();

      const edited = copy.replace('name: flights', 'name: planes').replace('arguments: redacted', 'arguments: digest');
      await form.fill(edited.replace('type: mcp', 'type: mcp\n      description: "<script>"'));
      await page.getByRole('button', { name: 'Check', exact: true }).click();
      await difference.getByText('The settings change.').waitFor();
      const facts = await difference.getByRole('definition').allTextContents();
      assert.deepEqual(facts, ['planes', 'flights', '1 handler']);
      const lines = (await difference.locator('pre').textContent()) ?? '';
      for (const line of ['-     - name: flights', '+     - name: planes', '-     arguments: redacted', '+     arguments: digest']) {
        assert.ok(lines.includes(`${line}\n`), `${line} is not in\n${lines}`);
      }
      assert.ok(lines.includes('<script>'), lines);
      const text = await page.locator('main').innerText();
      assert.ok(!text.includes('literal-secret'), text);
      await checkAccessibility(watched);
      await screenshot(watched, 'configuration-difference');

      // A copy replaces the edited text only after a question.
      await page.getByRole('button', { name: 'Edit a copy' }).click();
      assert.notEqual(await form.inputValue(), copy);
      await page.getByRole('button', { name: 'Replace the text of the form' }).click();
      assert.equal(await form.inputValue(), copy);
      await checkPage(watched);
    });
  });
});

describe('working memory', () => {
  test('namespaces are listed with their entries, without values', async () => {
    await withGateway({ servers: [], process: { builtins: { memory: {} } } }, async (gateway) => {
      const admin = await gateway.key(['admin', 'rest', 'tools:*']);
      const entry = { key: 'prices', data: 'value-of-the-caller', category: 'research/prices', tags: [MARKUP, 'new'] };
      const saved = await gateway.api('/tools/save_to_working_memory/call', { method: 'POST', key: admin, body: { arguments: entry } });
      assert.ok(!JSON.stringify(saved).includes('"isError":true'), JSON.stringify(saved));
      const watched = await open(browser, await gateway.link(admin));
      const { page } = watched;
      await visit(watched, 'memory', 'Memory');
      await page.getByText('1 namespace', { exact: true }).waitFor();
      await page.getByText('The values of working memory belong to the callers, and are not shown.').waitFor();
      const id = admin.split('_')[1] ?? '';
      const calls = page.getByRole('region', { name: 'Namespaces' }).getByRole('link', { name: 'tester' });
      assert.equal(await calls.getAttribute('href'), `#/calls?principal=${id}`);
      await page.getByRole('button', { name: `key/${id}` }).click();
      const row = page.getByRole('table', { name: `Entries of key/${id}` }).getByRole('row').filter({ hasText: 'prices' });
      await row.getByText(`key/${id}/prices`).waitFor();
      await row.getByText('research/prices').waitFor();
      await row.getByText(MARKUP).waitFor();
      assert.ok(!(await page.content()).includes('value-of-the-caller'), 'the value is shown');
      await checkAccessibility(watched);
      await screenshot(watched, 'memory-one-entry');
      await checkPage(watched);
    });
  });
});

describe('other agents', () => {
  test('are shown once they are in the file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agents-'));
    const file = join(folder, 'agents.json');
    try {
      await withGateway({ servers: [], process: { builtins: { agents: { file, check: '1s' } } } }, async (gateway) => {
        const watched = await open(browser, gateway.url);
        const { page } = watched;
        await visit(watched, 'agents', 'Agents');
        await page.getByText('No other agent is known.').waitFor();
        const skills = [{ id: 'echo', name: 'Echo', description: `Repeats ${MARKUP}` }];
        const card = { agentName: 'Helper', description: `Helps ${MARKUP}`, version: '1.2', url: 'http://127.0.0.1:1/a2a', skills };
        writeFileSync(file, JSON.stringify([card]));
        await gateway.until('/agents', (body) => (body as { agents: unknown[] }).agents.length === 1);
        await visit(watched, 'about', 'About');
        await visit(watched, 'agents', 'Agents');
        const shown = page.getByRole('article', { name: 'Agent Helper' });
        await shown.getByText(`Helps ${MARKUP}`).waitFor();
        await shown.getByText('file of known agents').waitFor();
        await shown.getByText(`Repeats ${MARKUP}`).waitFor();
        await checkAccessibility(watched);
        await screenshot(watched, 'agents-one-card');
        await checkPage(watched);
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('a problem is shown in place of availability', async () => {
    await withGateway({ servers: [] }, async (gateway) => {
      const watched = await open(browser, gateway.url);
      const { page } = watched;
      const agent = { name: 'planner', description: '', source: 'card', wellKnown: true, skills: [] };
      await answer(watched, '/agents', { enabled: true, agents: [{ ...agent, problem: `no valid signature ${MARKUP}` }] });
      await visit(watched, 'agents', 'Agents');
      const shown = page.getByRole('article', { name: 'Agent planner' });
      await shown.getByText('not available', { exact: true }).waitFor();
      await shown.getByText(`no valid signature ${MARKUP}`).waitFor();
      await shown.getByText('URL in the manifest, file of known agents').waitFor();
      await checkAccessibility(watched);
      await checkPage(watched);
    });
  });
});

describe('message bus', () => {
  test('a gateway without one says how to get it', async () => {
    await withGateway({ servers: [] }, async (gateway) => {
      const watched = await open(browser, gateway.url);
      await visit(watched, 'bus', 'Bus');
      await watched.page.getByText('The gateway has no bus').waitFor();
      await checkPage(watched);
    });
  });

  test('handlers and dead letters are listed', async () => {
    await withGateway({ servers: [] }, async (gateway) => {
      const watched = await open(browser, gateway.url);
      const { page } = watched;
      const handler = { name: 'remote', registry: 'tests', origin: 'manifest', type: 'bus', endpoint: 'tool.invoke' };
      const letter = { messageId: '5d41402a', messageType: 'RockBot.Tools.ToolInvokeRequest', source: MARKUP, time: null };
      await answer(watched, '/bus', { enabled: true, broker: 'nats://broker.example.com:4222', source: 'gateway-1', group: 'workers' });
      await answer(watched, '/handlers', { handlers: [{ ...handler, phase: 'Ready', since: '2026-01-01T00:00:00Z', tools: 2 }] });
      await answer(watched, '/bus/dead-letters', {
        messages: [
          { ...letter, topic: 'tool.invoke', reason: `bad body ${MARKUP}`, attempts: null, bytes: 5 },
          { ...letter, topic: 'tool.invoke', reason: 'delivered 4 times', attempts: 4, bytes: 5000, time: '2026-01-01T00:00:00Z' },
        ],
      });
      await visit(watched, 'bus', 'Bus');
      await page.getByText('nats://broker.example.com:4222').waitFor();
      assert.equal(await page.getByRole('link', { name: 'remote' }).getAttribute('href'), '#/fleet/remote');
      assert.equal(await page.getByLabel('Topic', { exact: true }).inputValue(), 'tool.invoke');
      assert.equal(await page.getByLabel('Group', { exact: true }).inputValue(), 'workers');
      const request = page.waitForRequest('**/bus/dead-letters?**');
      await page.getByRole('button', { name: 'List' }).click();
      assert.equal(new URL((await request).url()).search, '?topic=tool.invoke&group=workers&limit=100');
      await page.getByText('2 dead letters').waitFor();
      await page.getByText(`bad body ${MARKUP}`).waitFor();
      await page.getByText('4.9 KiB').waitFor();
      await checkAccessibility(watched);
      await screenshot(watched, 'bus-dead-letters');
      await checkPage(watched);
    });
  });
});

test('a call has a link to its trace', async () => {
  const traceURL = 'https://traces.example.com/trace/{traceId}?from=console';
  await withGateway({ servers: [['flights', 'plain', 10]], process: { console: { traceURL } } }, async (gateway) => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    const headers = { traceparent: `00-${trace}-00f067aa0ba902b7-01` };
    await gateway.api('/tools/picture/call', { method: 'POST', body: { arguments: {} }, headers });
    await gateway.until('/audit', (body) => JSON.stringify(body).includes('picture'));
    const watched = await open(browser, gateway.url);
    const { page } = watched;
    await visit(watched, 'calls', 'Calls');
    await page.getByRole('row').filter({ hasText: 'picture' }).getByRole('button').click();
    const link = page.getByRole('link', { name: 'Trace' });
    assert.equal(await link.getAttribute('href'), `https://traces.example.com/trace/${trace}?from=console`);
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
    assert.equal(await link.getAttribute('target'), '_blank');
    await checkPage(watched);
  });
});

test('the store and the gateways of the cluster are facts of the gateway', async () => {
  await withGateway({ servers: [] }, async (gateway) => {
    const status = (await gateway.api('/status')) as { store?: string };
    assert.ok(status.store, JSON.stringify(status));
    const watched = await open(browser, gateway.url);
    const { page } = watched;
    await visit(watched, 'about', 'About');
    const fact = (name: string) => page.locator('.facts > div').filter({ has: page.getByRole('term').getByText(name, { exact: true }) });
    assert.equal(await fact('Store').getByRole('definition').textContent(), status.store);
    assert.equal(await fact('Cluster').count(), 0);
    const peer = { address: 'http://10.0.0.7:8080', version: '0.1.0', started: '2026-01-01T00:00:00Z' };
    await answer(watched, '/status', { ...status, cluster: [peer, { ...peer, address: 'http://10.0.0.8:8080' }] });
    await visit(watched, 'tokens', 'Tokens');
    await visit(watched, 'about', 'About');
    await fact('Cluster').getByText(/http:\/\/10\.0\.0\.7:8080 0\.1\.0, started .*; http:\/\/10\.0\.0\.8:8080/).waitFor();
    await checkPage(watched);
  });
});
