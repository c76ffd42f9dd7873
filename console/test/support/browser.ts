/** The browser of the tests. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

const OUTPUT = process.env['CONSOLE_OUTPUT'] ?? '/tmp/console';
const SCREENSHOTS = join(OUTPUT, 'screenshots');
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Without these, Chromium asks hosts of its maker at its start. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function launch(): Promise<Browser> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
}

export interface WatchedPage {
  page: Page;
  /** Errors in the console of the page, and exceptions. */
  errors: string[];
  /** Addresses of requests to other hosts. */
  foreign: string[];
}

export interface PageOptions {
  width?: number;
  colours?: 'light' | 'dark';
}

/** Opens an address in a context of its own. */
export async function open(browser: Browser, url: string, { width = 1280, colours = 'light' }: PageOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme: colours, locale: 'en-GB' });
  const page = await context.newPage();
  const errors: string[] = [];
  const foreign: string[] = [];
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('dialog', (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const { origin } = new URL(url);
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin && !request.url().startsWith('data:')) {
      foreign.push(request.url());
    }
  });
  page.setDefaultTimeout(20_000);
  await page.goto(url);
  return { page, errors, foreign };
}

/** Goes to a page of the console and waits for its data. */
export async function visit({ page }: WatchedPage, path: string, title: string): Promise<void> {
  await page.evaluate((fragment) => (location.hash = fragment), `#/${path}`);
  await page.getByRole('heading', { name: title, level: 1 }).waitFor();
  await page.waitForFunction(() => document.querySelector('[aria-busy="true"]') === null);
}

/** Checks that no script of a server has run, that nothing has failed, and that nothing came from elsewhere. */
export async function checkPage({ page, errors, foreign }: WatchedPage): Promise<void> {
  assert.deepEqual(errors, []);
  assert.deepEqual(foreign, []);
  assert.equal(await page.evaluate(() => (window as { hacked?: number }).hacked), undefined);
}

/** Checks the rules of accessibility whose violation is serious. */
export async function checkAccessibility({ page }: WatchedPage): Promise<void> {
  // Evaluated by the debugger, which the policy of contents does not concern.
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (options: unknown) => Promise<{ violations: Violation[] }> } }).axe;
    interface Violation {
      id: string;
      impact: string;
      nodes: { html: string; failureSummary: string }[];
    }
    const found = await axe.run({ resultTypes: ['violations'] });
    return found.violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`).join(' | ')}`);
  });
  assert.deepEqual(violations, []);
}

export async function screenshot({ page }: WatchedPage, name: string): Promise<void> {
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}
