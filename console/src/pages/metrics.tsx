import { useMemo, useState } from 'preact/hooks';
import { api, type Caller, content, type Series } from '../api/client';
import { useInterval, useLoad } from '../api/load';
import { Chart, type Line } from '../components/chart';
import { Empty, ErrorNotice, Loading, PageHead } from '../components/controls';
import { bytes, milliseconds, number } from '../format';

const MINUTE = 60_000;

const SPANS: [string, number][] = [
  ['Last hour', 60],
  ['Last 3 hours', 180],
  ['Last 6 hours', 360],
];

export function MetricsPage({ caller }: { caller: Caller }) {
  if (!caller.access.admin) {
    return <Empty>This key lacks the scope `admin`, which reads the metrics of all handlers.</Empty>;
  }
  return <Metrics />;
}

function Metrics() {
  const [minutes, setMinutes] = useState(60);
  const series = useLoad(() => content(api.GET('/series', { params: { query: { minutes } } })), [minutes]);
  useInterval(series.reload, MINUTE);
  if (series.data === undefined) {
    return <Loading error={series.error} retry={series.reload} />;
  }
  return (
    <>
      <PageHead title="Metrics">
        <select aria-label="Time" value={String(minutes)} onChange={(event) => setMinutes(Number(event.currentTarget.value))}>
          {SPANS.map(([label, length]) => (
            <option key={length} value={String(length)}>
              {label}
            </option>
          ))}
        </select>
      </PageHead>
      <ErrorNotice error={series.error} retry={series.reload} />
      <Charts series={series.data} />
      <p class="muted">
        One point a minute, since the start of this gateway. <code>/metrics</code> has the same for Prometheus.
      </p>
    </>
  );
}

function Charts({ series }: { series: Series }) {
  const lines = useMemo(() => {
    const line = (label: string, colour: string, values: (number | null)[]): Line => ({ label, colour, values });
    return {
      calls: [line('calls', 'accent', series.calls), line('errors', 'bad', series.errors)],
      latency: [
        line('p50', 'good', series.p50),
        line('p95', 'busy', series.p95),
        line('p99', 'bad', series.p99),
      ],
      memory: [line('gateway', 'accent', series.memory), line('programs', 'busy', series.programMemory)],
    };
  }, [series]);
  return (
    <div class="charts">
      <Chart title="Calls a minute" times={series.times} lines={lines.calls} format={number} />
      <Chart title="Latency" times={series.times} lines={lines.latency} format={milliseconds} />
      <Chart title="Memory" times={series.times} lines={lines.memory} format={bytes} />
    </div>
  );
}
