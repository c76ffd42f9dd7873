/** Charts of series by the minute. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Line {
  label: string;
  /** Name of a colour of the style sheet. */
  colour: string;
  values: (number | null)[];
}

const HEIGHT = 160;

export function Chart({
  title,
  times,
  lines,
  format,
}: {
  title: string;
  times: number[];
  lines: Line[];
  format: (value: number) => string;
}) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = parent.current;
    if (element === null) {
      return undefined;
    }
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour('muted'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
        axes: [axis, { ...axis, size: 64, values: (_plot, values) => values.map((value) => format(value)) }],
        series: [
          {},
          ...lines.map((line) => ({
            label: line.label,
            stroke: colour(line.colour),
            width: 1.5,
            points: { show: line.values.filter((value) => value !== null).length < 3 },
          })),
        ],
      },
      [times, ...lines.map((line) => line.values)] as uPlot.AlignedData,
      element,
    );
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [times, lines, format]);
  const last = (line: Line) => line.values.findLast((value) => value !== null) ?? undefined;
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        {lines.map((line) => (
          <span key={line.label} class={`key ${line.colour}`}>
            {line.label} {last(line) === undefined ? '' : format(last(line) as number)}
          </span>
        ))}
      </figcaption>
      <div ref={parent} class="plot" aria-hidden="true" />
    </figure>
  );
}

/** A small line without axes. */
export function Sparkline({ values, label }: { values: (number | null)[]; label: string }) {
  const known = values.flatMap((value, index) => (value === null ? [] : [[index, value] as const]));
  if (known.length === 0) {
    return null;
  }
  const highest = Math.max(...known.map(([, value]) => value), 1);
  const width = Math.max(values.length - 1, 1);
  const point = ([index, value]: readonly [number, number]) =>
    `${((index / width) * 98 + 1).toFixed(1)},${(18 - (value / highest) * 16).toFixed(1)}`;
  return (
    <svg class="sparkline" viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={known.map(point).join(' ')} />
      {known.slice(-1).map((last) => {
        const [x, y] = point(last).split(',');
        return <circle key="last" cx={x} cy={y} r="1.5" />;
      })}
    </svg>
  );
}
