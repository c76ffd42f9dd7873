/** What a stranger comes to do, each in under a minute. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { checkPage, launch, open, screenshot, type WatchedPage } from './support/browser.ts';
import { Gateway } from './support/gateway.ts';

const MINUTE = 60_000;

let browser: Browser;
let gateway: Gateway;
let admin: string;

before(async () => {
  browser = await launch();
  gateway = await Gateway.start({ servers: [['flights', 'plain', 10], ['weather', 'failing']] });
  admin = await gateway.key(['admin', 'rest', 'tools:*']);
});

after(async () => {
  await browser.close();
  await gateway.stop();
});

/** Runs a task from the link of `toolyard console` on, and prints its time. */
async function task(name: string, run: (watched: WatchedPage) => Promise<void>): Promise<void> {
  await test(name, { timeout: MINUTE }, async (context) => {
    const watched = await open(browser, await gateway.link(admin));
    const start = performance.now();
    await run(watched);
    context.diagnostic(`${Math.round(performance.now() - start)} ms`);
    await screenshot(watched, `task-${name.replaceAll(/\W+/g, '-')}`);
    await checkPage(watched);
    await watched.page.context().close();
  });
}

describe('tasks', async () => {
  await task('find why a server is down', async ({ page }) => {
    await page.getByRole('button', { name: 'weather' }).click();
    await page.getByText('fatal: cannot open /etc/weather.conf: no such file').first().waitFor();
    await page.getByText('3', { exact: false }).first().waitFor();
    await page.getByText('process_exited').waitFor();
  });

  await task('call a tool with an enum and a nested object', async ({ page }) => {
    await page.getByRole('link', { name: 'Tools', exact: true }).click();
    await page.getByLabel('Filter tools').fill('book');
    await page.getByRole('link', { name: /book_flight/ }).click();
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('required').first().waitFor();
    await page.getByLabel(/^cabin/).selectOption('business');
    await page.getByLabel(/^name/).fill('Ada Lovelace');
    await page.getByLabel(/^email/).fill('ada@example.com');
    await page.getByLabel(/^seats/).fill('2');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    const result = page.getByRole('region', { name: 'Result' });
    await result.getByText('"cabin": "business"').first().waitFor();
    await result.getByText('"email": "ada@example.com"').first().waitFor();
  });

  await task('see who called it', async (watched) => {
    const { page } = watched;
    await page.getByRole('link', { name: 'Calls', exact: true }).click();
    const row = page.getByRole('row').filter({ hasText: 'book_flight' }).first();
    await row.getByText('tester').waitFor();
    await row.getByText('ok', { exact: true }).waitFor();
    await row.getByRole('button').click();
    await page.getByRole('link', { name: 'Repeat' }).waitFor();
    await screenshot(watched, 'calls');
    await page.getByRole('link', { name: 'Repeat' }).click();
    await page.getByRole('heading', { name: 'book_flight' }).waitFor();
    assert.equal(await page.getByLabel(/^name/).inputValue(), 'Ada Lovelace');
  });

  await task('make a key that sees two tools', async ({ page }) => {
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('button', { name: 'Create a key' }).click();
    const form = page.getByRole('form', { name: 'New key' });
    await form.getByLabel('Name').fill('two tools');
    await form.getByLabel('picture').check();
    await form.getByLabel('refuse').check();
    await form.getByText('This key sees 2 tools').waitFor();
    await form.getByRole('textbox', { name: 'Calls' }).fill('50/day');
    await form.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('meter', { name: 'Calls: 0 of 50/day used' }).waitFor();
    const key = await page.getByLabel('Key', { exact: true }).textContent();
    const tools = (await gateway.api('/tools', { key: key ?? '' })) as { tools: { name: string }[] };
    assert.deepEqual(tools.tools.map((tool) => tool.name), ['picture', 'refuse']);
  });

  await task('publish and roll back a function', async ({ page }) => {
    await page.getByRole('link', { name: 'Functions', exact: true }).click();
    await page.getByRole('button', { name: 'Create a function' }).click();
    await page.getByLabel('Id', { exact: true }).fill('greeting');
    await page.getByRole('button', { name: 'Save the draft' }).click();
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByText('Published as 1.0.0').waitFor();
    await page.getByRole('button', { name: 'Write a draft' }).click();
    const source = page.getByLabel('cortexone_function.lua');
    await source.fill((await source.inputValue()).replace('event = event', 'event = event, second = true'));
    await page.getByRole('button', { name: 'Save the draft' }).click();
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByText('Published as 1.0.1').waitFor();
    await page.getByText('cortexone_function.lua has changed').waitFor();
    await page.getByRole('button', { name: 'Lines of cortexone_function.lua' }).click();
    await page.getByLabel('Difference of cortexone_function.lua').getByText('event = event, second = true').waitFor();
    await page.getByRole('button', { name: 'Roll back' }).click();
    await page.getByRole('button', { name: 'Go back to 1.0.0' }).click();
    await page.getByRole('rowheader', { name: '1.0.0' }).getByText('latest').waitFor();
    await page.getByRole('button', { name: 'Invoke' }).click();
    await page.getByText('"statusCode": 200').first().waitFor();
  });
});
