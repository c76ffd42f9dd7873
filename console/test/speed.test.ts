/** Measurements, which are printed and not asserted: they depend on the machine and on what else it does. */
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { launch, open, visit } from './support/browser.ts';
import { Gateway } from './support/gateway.ts';

let browser: Browser;
let gateway: Gateway;

before(async () => {
  browser = await launch();
  gateway = await Gateway.start({ servers: [['one', 'plain', 1500], ['two', 'plain', 1500]] });
});

after(async () => {
  await browser.close();
  await gateway.stop();
});

test('3,000 tools are listed and filtered', async (context) => {
  const { page } = await open(browser, `${gateway.url}#/tools`);
  await page.getByText('3,000 tools').waitFor();
  const listed = await page.evaluate(() => performance.now());
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN);
  context.diagnostic(`first paint after ${Math.round(paint)} ms, 3,000 tools listed after at most ${Math.round(listed)} ms`);
  const frames = await page.evaluate(async () => {
    const input = document.querySelector<HTMLInputElement>('input[type=search]');
    const times: number[] = [];
    for (const text of ['t', 'to', 'too', 'tool', 'tool_1', 'tool_12', '']) {
      const start = performance.now();
      if (input !== null) {
        input.value = text;
        input.dispatchEvent(new InputEvent('input', { bubbles: true }));
      }
      // The second frame begins after the first one was painted.
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      times.push(performance.now() - start);
    }
    return times;
  });
  context.diagnostic(`a key in the filter is painted after ${frames.map((time) => Math.round(time)).join(', ')} ms`);
});

test('an open console costs an idle gateway little', async (context) => {
  const seconds = 10;
  const idle = async () => {
    const start = gateway.processorTime();
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    return ((gateway.processorTime() - start) / seconds) * 100;
  };
  const without = await idle();
  const watched = await open(browser, gateway.url);
  await visit(watched, 'fleet', 'Fleet');
  const open_ = await idle();
  context.diagnostic(`share of a core: ${without.toFixed(2)} % without a console, ${open_.toFixed(2)} % with one`);
});
