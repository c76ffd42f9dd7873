/** Sign-in, and what other pages can do. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { checkPage, launch, open, visit } from './support/browser.ts';
import { Gateway } from './support/gateway.ts';

let browser: Browser;
let gateway: Gateway;
let admin: string;

before(async () => {
  browser = await launch();
  gateway = await Gateway.start({ servers: [['flights', 'plain', 10]] });
  admin = await gateway.key(['admin', 'rest', 'tools:*']);
});

after(async () => {
  await browser.close();
  await gateway.stop();
});

/** The response to the first request, without a session. */
const UNAUTHENTICATED = 'Failed to load resource: the server responded with a status of 401 (Unauthorized)';

describe('sign-in', () => {
  test('key is not kept', async () => {
    const watched = await open(browser, gateway.url);
    const { page } = watched;
    await page.getByLabel('Key').fill(admin);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Fleet' }).waitFor();
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
    assert.ok(!stored.includes(admin.slice(-20)), stored);
    await page.reload();
    await page.getByRole('heading', { name: 'Fleet' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Key').waitFor();
    assert.deepEqual([...new Set(watched.errors)], [UNAUTHENTICATED]);
  });

  test('wrong key is refused with the reason', async () => {
    const { page } = await open(browser, gateway.url);
    await page.getByLabel('Key').fill('ty_0123456789ab_00');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('wrong key').waitFor();
  });

  test('link signs in once, and leaves no code behind', async () => {
    const link = await gateway.link(admin);
    assert.ok(!link.includes(admin.slice(-20)), link);
    const watched = await open(browser, link);
    await watched.page.getByRole('heading', { name: 'Fleet' }).waitFor();
    assert.ok(!watched.page.url().includes('code'), watched.page.url());
    await checkPage(watched);
    const again = await open(browser, link);
    await again.page.getByText('the one-time code is unknown, was used, or has expired').waitFor();
  });

  test('revoked key ends the session', async () => {
    const other = await gateway.key(['rest', 'tools:*'], admin);
    const watched = await open(browser, await gateway.link(other));
    await watched.page.getByRole('heading', { name: 'Fleet' }).waitFor();
    await gateway.api(`/keys/${other.split('_')[1]}`, { method: 'DELETE', key: admin });
    await watched.page.getByRole('link', { name: 'Tools', exact: true }).click();
    await watched.page.getByLabel('Key').waitFor();
  });
});

test('first key of a gateway is created in the console, which goes on with it', async () => {
  const open_ = await Gateway.start({ servers: [['flights', 'plain', 10]] });
  try {
    const watched = await open(browser, open_.url);
    await visit(watched, 'keys', 'Keys');
    // A request without a key that reaches the gateway after the first key would be refused.
    const creation = watched.page.waitForResponse((response) => response.url().endsWith('/keys') && response.request().method() === 'POST');
    await watched.page.route('**/keys/tools', async (route) => {
      await creation;
      await route.continue().catch(() => undefined);
    });
    const preview = watched.page.waitForRequest('**/keys/tools');
    await watched.page.getByRole('button', { name: 'Create a key' }).click();
    await preview;
    await watched.page.getByLabel('Name').fill('first');
    await watched.page.getByRole('button', { name: 'Create', exact: true }).click();
    const key = await watched.page.getByRole('region', { name: 'New key' }).locator('pre').textContent();
    assert.ok(key?.startsWith('ty_'), String(key));
    await watched.page.getByText('yours').waitFor();
    await checkPage(watched);
  } finally {
    await open_.stop();
  }
});

describe('another page', () => {
  test('cannot show the console in a frame', async () => {
    const page = `<!doctype html><title>x</title><iframe src="${gateway.url}" width="600" height="400"></iframe>`;
    const server = createServer((_request, response) => response.setHeader('Content-Type', 'text/html').end(page));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const watched = await open(browser, `http://127.0.0.1:${port}/`);
      assert.ok(watched.errors.some((error) => error.includes('frame-ancestors')), watched.errors.join('\n'));
    } finally {
      server.close();
    }
  });

  test('cannot call with the session of a browser', async () => {
    const watched = await open(browser, await gateway.link(admin));
    await watched.page.getByRole('heading', { name: 'Fleet' }).waitFor();
    assert.deepEqual(await watched.page.context().cookies(), []);
    const answer = await fetch(`${gateway.url}api/v1/keys`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Origin: 'https://evil.example' },
      body: JSON.stringify({ name: 'x', scopes: ['admin'] }),
    });
    assert.ok([401, 403].includes(answer.status), String(answer.status));
  });

  test('policy forbids inline scripts', async () => {
    const watched = await open(browser, await gateway.link(admin));
    await visit(watched, 'fleet', 'Fleet');
    await watched.page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.hacked = 1';
      document.body.append(script);
    });
    assert.equal(await watched.page.evaluate(() => (window as { hacked?: number }).hacked), undefined);
    assert.ok(watched.errors.some((error) => error.includes('Content Security Policy')), watched.errors.join('\n'));
  });
});
