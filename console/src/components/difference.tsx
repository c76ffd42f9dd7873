/** The difference between two texts by lines. */
import { useMemo, useState } from 'preact/hooks';
import { type DifferenceLine, lineDifference } from '../difference';
import { count, visible } from '../format';
import { cut } from './text';

/** Lines that are shown at first, and by each press of the button. */
const STEP = 500;

/** Characters of a line that are shown. */
const WIDTH = 1_000;

export function Difference({ before, after, label }: { before: string; after: string; label: string }) {
  const { lines, added, removed, aligned } = useMemo(() => lineDifference(before, after), [before, after]);
  const [shown, setShown] = useState(STEP);
  if (added + removed === 0) {
    return <p class="muted">The lines are the same.</p>;
  }
  return (
    <>
      <p class="muted">
        {count(added, 'added line')}, {count(removed, 'removed line')}
        {!aligned && '. The texts differ too much to find the lines that they share.'}
      </p>
      <pre class="difference" tabIndex={0} aria-label={label}>
        {lines.slice(0, shown).map((line, index) => (
          <LineOfDifference key={index} line={line} />
        ))}
      </pre>
      {lines.length > shown && (
        <button type="button" class="link" onClick={() => setShown(shown + STEP)}>
          Show more of {count(lines.length - shown, 'further line')}
        </button>
      )}
    </>
  );
}

function LineOfDifference({ line }: { line: DifferenceLine }) {
  if (line.kind === 'skipped') {
    return <span class="muted">{`  … ${count(line.count, 'equal line')}\n`}</span>;
  }
  const text = visible(cut(line.text, WIDTH));
  switch (line.kind) {
    case 'added':
      return <ins>{`+ ${text}\n`}</ins>;
    case 'removed':
      return <del>{`- ${text}\n`}</del>;
    case 'same':
      return <span>{`  ${text}\n`}</span>;
  }
}
