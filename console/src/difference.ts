/** The difference between two texts by lines, with bounded work. */

export type DifferenceLine =
  | { kind: 'same' | 'added' | 'removed'; text: string }
  /** Equal lines that are left out. */
  | { kind: 'skipped'; count: number };

export interface LineDifference {
  lines: DifferenceLine[];
  added: number;
  removed: number;
  /** False if the texts differ too much to be aligned: everything between their common ends counts as replaced. */
  aligned: boolean;
}

/** Equal lines that are shown around a change. */
const CONTEXT = 3;

/** Maximum number of added and removed lines that are aligned. The memory of the search grows with its square. */
const MAX_EDITS = 1_000;

/** Maximum number of comparisons of lines, which take about a tenth of a second. */
const MAX_COMPARISONS = 10_000_000;

/** Compares two texts. Equal lines far from a change are left out. */
export function lineDifference(before: string, after: string): LineDifference {
  const [from, to] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(from.length, to.length);
  let head = 0;
  while (head < shorter && from[head] === to[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < shorter - head && from.at(-1 - tail) === to.at(-1 - tail)) {
    tail += 1;
  }
  const [removed, added] = [from.slice(head, from.length - tail), to.slice(head, to.length - tail)];
  const edits = alignment(removed, added);
  const middle = edits ?? [...marked('removed', removed), ...marked('added', added)];
  const all = [...marked('same', from.slice(0, head)), ...middle, ...marked('same', from.slice(from.length - tail))];
  const count = (kind: Line['kind']) => middle.filter((line) => line.kind === kind).length;
  return { lines: withoutDistant(all), added: count('added'), removed: count('removed'), aligned: edits !== undefined };
}

type Line = Exclude<DifferenceLine, { kind: 'skipped' }>;

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

function marked(kind: Line['kind'], lines: string[]): Line[] {
  return lines.map((text) => ({ kind, text }));
}

/** Leaves out equal lines that are not near a change. */
function withoutDistant(lines: Line[]): DifferenceLine[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind !== 'same') {
      isNear.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
    }
  });
  const shown: DifferenceLine[] = [];
  lines.forEach((line, index) => {
    const last = shown.at(-1);
    if (isNear[index] === 1) {
      shown.push(line);
    } else if (last?.kind === 'skipped') {
      last.count += 1;
    } else {
      shown.push({ kind: 'skipped', count: 1 });
    }
  });
  return shown;
}

/**
 * Finds the fewest added and removed lines (E. Myers, "An O(ND) Difference Algorithm", 1986), or `undefined` if they, or
 * the work, exceed their maximum.
 */
function alignment(before: string[], after: string[]): Line[] | undefined {
  const [from, to] = numbered(before, after);
  const [rows, columns] = [from.length, to.length];
  const most = Math.min(rows + columns, MAX_EDITS);
  // Furthest row on each diagonal, and a copy of it for each number of edits.
  const furthest = new Int32Array(2 * most + 3);
  const at = (diagonal: number) => furthest[most + 1 + diagonal] ?? 0;
  const history: Int32Array[] = [];
  let comparisons = 0;
  for (let edits = 0; edits <= most; edits += 1) {
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const isAddition = diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1));
      let row = isAddition ? at(diagonal + 1) : at(diagonal - 1) + 1;
      const start = row;
      while (row < rows && row - diagonal < columns && from[row] === to[row - diagonal]) {
        row += 1;
      }
      comparisons += row - start + 1;
      furthest[most + 1 + diagonal] = row;
      if (row >= rows && row - diagonal >= columns) {
        return path(before, after, history);
      }
    }
    if (comparisons > MAX_COMPARISONS) {
      return undefined;
    }
    history.push(furthest.slice(most + 1 - edits, most + 2 + edits));
  }
  return undefined;
}

/** Follows the furthest rows of each number of edits from the end of both texts to their beginning. */
function path(before: string[], after: string[], history: Int32Array[]): Line[] {
  const lines: Line[] = [];
  let [row, column] = [before.length, after.length];
  const take = (kind: Line['kind'], text: string | undefined) => lines.push({ kind, text: text ?? '' });
  for (let edits = history.length; edits >= 0; edits -= 1) {
    const reached = history[edits - 1];
    const at = (diagonal: number) => reached?.[edits - 1 + diagonal] ?? -1;
    const diagonal = row - column;
    const isAddition = diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1));
    const start = edits === 0 ? 0 : isAddition ? at(diagonal + 1) : at(diagonal - 1) + 1;
    while (row > start) {
      row -= 1;
      column -= 1;
      take('same', before[row]);
    }
    if (edits > 0 && isAddition) {
      column -= 1;
      take('added', after[column]);
    } else if (edits > 0) {
      row -= 1;
      take('removed', before[row]);
    }
  }
  return lines.reverse();
}

/** Replaces lines by numbers, which are equal for equal lines. */
function numbered(...texts: [string[], string[]]): [Int32Array, Int32Array] {
  const known = new Map<string, number>();
  const numberOf = (line: string) => {
    const number = known.get(line) ?? known.size;
    known.set(line, number);
    return number;
  };
  const [before, after] = texts;
  return [Int32Array.from(before, numberOf), Int32Array.from(after, numberOf)];
}
