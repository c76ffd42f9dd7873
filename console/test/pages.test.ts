/** Each page with no, few and many tools, a failing server, a hostile server, and a key with few scopes. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { checkAccessibility, checkPage, launch, open, screenshot, visit, type WatchedPage } from './support/browser.ts';
import { Gateway, type Server } from './support/gateway.ts';

const PAGES: [path: string, title: string][] = [
  ['fleet', 'Fleet'],
  ['tools', 'Tools'],
  ['calls', 'Calls'],
  ['metrics', 'Metrics'],
  ['keys', 'Keys'],
  ['tokens', 'Tokens'],
  ['functions', 'Functions'],
  ['schedules', 'Schedules'],
  ['memory', 'Memory'],
  ['agents', 'Agents'],
  ['bus', 'Bus'],
  ['configuration', 'Configuration'],
  ['connect', 'Connect'],
  ['sandbox', 'Sandbox'],
  ['about', 'About'],
];

const FLEETS: [name: string, servers: Server[]][] = [
  ['no tools', []],
  ['10 tools', [['flights', 'plain', 10]]],
  ['3,000 tools', [['one', 'plain', 1500], ['two', 'plain', 1500]]],
  ['a failing server', [['flights', 'plain', 10], ['weather', 'failing']]],
  ['a hostile server', [['flights', 'plain', 10], ['hostile', 'hostile']]],
];

let browser: Browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

async function withGateway(servers: Server[], run: (gateway: Gateway) => Promise<void>): Promise<void> {
  const gateway = await Gateway.start({ servers });
  try {
    await run(gateway);
  } finally {
    await gateway.stop();
  }
}

async function titles({ page }: WatchedPage): Promise<string[]> {
  return page.getByRole('navigation').getByRole('link').allTextContents();
}

describe('pages', () => {
  for (const [name, servers] of FLEETS) {
    test(`with ${name}`, async () => {
      await withGateway(servers, async (gateway) => {
        for (const colours of ['light', 'dark'] as const) {
          const watched = await open(browser, gateway.url, { colours });
          for (const [path, title] of PAGES) {
            await visit(watched, path, title);
            await checkAccessibility(watched);
            await screenshot(watched, `${name.replaceAll(/\W+/g, '-')}-${path}-${colours}`);
          }
          await checkPage(watched);
          await watched.page.context().close();
        }
      });
    });
  }

  test('on a phone', async () => {
    await withGateway([['flights', 'plain', 10]], async (gateway) => {
      const watched = await open(browser, gateway.url, { width: 390 });
      for (const [path, title] of PAGES) {
        await visit(watched, path, title);
        const overflow = await watched.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(overflow <= 0, `${path} is ${overflow} pixels wider than the screen`);
        await screenshot(watched, `phone-${path}`);
      }
      await checkPage(watched);
    });
  });

  test('of a key with few scopes', async () => {
    await withGateway([['flights', 'plain', 10], ['weather', 'failing']], async (gateway) => {
      const admin = await gateway.key(['admin', 'rest', 'tools:*']);
      const few = await gateway.key(['rest', 'tools:picture'], admin);
      const watched = await open(browser, await gateway.link(few));
      await visit(watched, 'fleet', 'Fleet');
      assert.deepEqual(await titles(watched), ['Fleet', 'Tools', 'Tokens', 'Connect', 'About']);
      await visit(watched, 'tools', 'Tools');
      await watched.page.getByText('1 tool', { exact: true }).waitFor();
      assert.equal(await watched.page.getByText('book_flight').count(), 0);
      // What the key may not see does not exist.
      await watched.page.evaluate(() => (location.hash = '#/tools/book_flight'));
      await watched.page.getByText('There is no tool of this name for this key.').waitFor();
      await checkPage(watched);
    });
  });
});

describe('scheduled tasks', () => {
  test('are listed and cancelled', async () => {
    const gateway = await Gateway.start({ servers: [], process: { builtins: { schedules: { minInterval: '1s' } } } });
    try {
      const task = { name: 'report', cron: '* * * * * *', description: '<b>Go</b>' };
      await gateway.api('/tools/schedule_task/call', { method: 'POST', body: { arguments: task } });
      await gateway.until('/schedules', (body) => {
        const { tasks } = body as { tasks: { last?: unknown }[] };
        return tasks[0]?.last !== undefined;
      });
      const watched = await open(browser, gateway.url);
      await visit(watched, 'schedules', 'Schedules');
      const card = watched.page.getByRole('article', { name: 'Task report' });
      await card.getByText('<b>Go</b>').first().waitFor();
      await card.getByRole('button', { name: 'Last runs' }).click();
      await card.getByText(/succeeded: /).first().waitFor();
      await checkAccessibility(watched);
      await screenshot(watched, 'schedules-one-task');
      await card.getByRole('button', { name: 'Cancel' }).click();
      await card.getByRole('button', { name: 'Cancel it now' }).click();
      await watched.page.getByText('No agent has scheduled a task.').waitFor();
      await checkPage(watched);
    } finally {
      await gateway.stop();
    }
  });
});

describe('a hostile server', () => {
  test('is shown as text wherever it writes', async () => {
    await withGateway([['hostile', 'hostile']], async (gateway) => {
      const watched = await open(browser, gateway.url);
      const { page } = watched;
      for (const tool of ['attack', 'odd', 'x'.repeat(64)]) {
        await page.evaluate((name) => (location.hash = `#/tools/${name}`), tool);
        await page.getByRole('heading', { name: tool, level: 2 }).waitFor();
      }
      await page.evaluate(() => (location.hash = '#/tools/attack'));
      await page.getByText('⟨U+202E⟩').first().waitFor();
      await page.getByRole('button', { name: 'Edit as JSON' }).click();
      await page.getByLabel('Arguments as JSON').fill('{}');
      await page.getByRole('button', { name: 'Edit as a form' }).click();
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByText('required').first().waitFor();
      await checkAccessibility(watched);
      await page.evaluate(() => (location.hash = '#/tools/odd'));
      await page.getByRole('heading', { name: 'odd', level: 2 }).waitFor();
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByRole('region', { name: 'Result' }).waitFor();
      assert.equal(await page.locator('main img').count(), 0);
      assert.equal(await page.locator('main script').count(), 0);
      assert.equal(await page.locator('main a[href^="javascript"]').count(), 0);
      await screenshot(watched, 'hostile-result');
      await checkAccessibility(watched);
      await visit(watched, 'calls', 'Calls');
      await checkPage(watched);
    });
  });
});
