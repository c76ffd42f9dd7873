/** Differences between texts. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { type DifferenceLine, lineDifference } from '../src/difference.ts';

const SIGNS = { same: ' ', added: '+', removed: '-' };

function shown(lines: DifferenceLine[]): string[] {
  return lines.map((line) => (line.kind === 'skipped' ? `@${line.count}` : `${SIGNS[line.kind]}${line.text}`));
}

function check(before: string, after: string, expected: string[]): void {
  assert.deepEqual(shown(lineDifference(before.replaceAll(' ', '\n'), after.replaceAll(' ', '\n')).lines), expected);
}

test('added and removed lines', () => {
  check('', '', []);
  check('a b', 'a b', ['@2']);
  check('', 'a', ['+a']);
  check('a', '', ['-a']);
  check('a b c', 'a x c', [' a', '-b', '+x', ' c']);
  check('a b c d', 'b c x d', ['-a', ' b', ' c', '+x', ' d']);
  check('a a a', 'a a', [' a', ' a', '-a']);
});

test('equal lines far from a change are left out', () => {
  check('1 2 3 4 5 6 7 8 9', '1 2 3 4 x 6 7 8 9', ['@1', ' 2', ' 3', ' 4', '-5', '+x', ' 6', ' 7', ' 8', '@1']);
});

test('the difference leads from one text to the other with the fewest lines', () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed % below;
  };
  for (let round = 0; round < 300; round += 1) {
    const text = () => Array.from({ length: random(9) }, () => 'abc'[random(3)] ?? '');
    const [before, after] = [text(), text()];
    const { lines, added, removed } = lineDifference(before.join('\n'), after.join('\n'));
    const without = (kind: string) => lines.flatMap((line) => (line.kind === 'skipped' || line.kind === kind ? [] : [line.text]));
    if (lines.every((line) => line.kind !== 'skipped')) {
      assert.deepEqual([without('added'), without('removed')], [before, after]);
    }
    assert.equal(added + removed, before.length + after.length - 2 * longestCommon(before, after));
  }
});

function longestCommon([first, ...rest]: string[], other: string[]): number {
  if (first === undefined || other.length === 0) {
    return 0;
  }
  const index = other.indexOf(first);
  const without = longestCommon(rest, other);
  return index < 0 ? without : Math.max(without, 1 + longestCommon(rest, other.slice(index + 1)));
}

test('long texts take bounded time', () => {
  const lines = (number: number, of: (index: number) => string) => Array.from({ length: number }, (_line, index) => of(index)).join('\n');
  const before = lines(200_000, (index) => `line ${index}`);
  const edited = lineDifference(before, before.replace('line 1000\n', 'other\n').replace('line 190000\n', ''));
  assert.deepEqual([edited.added, edited.removed, edited.aligned], [1, 2, true]);
  for (const other of [lines(200_000, (index) => `other ${index}`), lines(200_000, (index) => `line ${index % 7}`)]) {
    const start = performance.now();
    const { aligned, removed } = lineDifference(before, other);
    assert.ok(!aligned && removed > 100_000);
    assert.ok(performance.now() - start < 5_000, 'the search has a bound');
  }
});
