import { useState } from 'preact/hooks';
import { api, content, type ScheduledTask } from '../api/client';
import { useAction, useLoad } from '../api/load';
import { ConfirmButton, Empty, ErrorNotice, Facts, Loading, PageHead, State } from '../components/controls';
import { useRows } from '../components/rows';
import { Name } from '../components/text';
import { count, dateTime, visible } from '../format';
import { href } from '../router';

/** The scheduled tasks of all keys. */
export function SchedulesPage() {
  const list = useLoad(() => content(api.GET('/schedules')), []);
  const { rows, end } = useRows(list.data?.tasks ?? [], []);
  if (list.data === undefined) {
    return <Loading error={list.error} retry={list.reload} />;
  }
  const { enabled, timeZone, tasks } = list.data;
  return (
    <>
      <PageHead title="Schedules">
        <span class="muted">{enabled ? `${count(tasks.length, 'task')}, times of ${timeZone}` : ''}</span>
      </PageHead>
      <ErrorNotice error={list.error} retry={list.reload} />
      {!enabled && (
        <Empty>
          Tasks do not fire: <code>builtins: {'{schedules: {}}'}</code> in the manifest enables them.
        </Empty>
      )}
      {enabled && tasks.length === 0 && <Empty>No agent has scheduled a task.</Empty>}
      <div class="cards">
        {rows.map((task) => (
          <TaskCard key={task.id} task={task} reload={list.reload} />
        ))}
      </div>
      {end}
    </>
  );
}

const KINDS = { succeeded: 'good', failed: 'bad', missed: 'off', skipped: 'off', interrupted: 'bad' } as const;

function TaskCard({ task, reload }: { task: ScheduledTask; reload: () => void }) {
  const cancel = useAction(async () => {
    await content(api.DELETE('/schedules/{id}', { params: { path: { id: task.id } } }));
    reload();
  });
  const [open, setOpen] = useState(false);
  const outcome = task.last?.outcome;
  return (
    <article class="card" aria-label={`Task ${visible(task.name)}`}>
      <div class="line">
        <h2>
          <Name>{task.name}</Name>
        </h2>
        {task.running ? <State kind="busy">running</State> : outcome !== undefined && <State kind={KINDS[outcome]}>{outcome}</State>}
      </div>
      <p>
        <bdi>{visible(task.description)}</bdi>
      </p>
      <Facts>
        {[
          ['Cron', <code key="cron">{task.cron}</code>],
          ['Next', dateTime(task.next)],
          ['Runs', task.runOnce ? 'once' : undefined],
          ['Key', task.key && visible(task.key.name ?? task.key.id)],
          ['Scheduled', dateTime(task.created)],
        ]}
      </Facts>
      <div class="actions">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          Last runs
        </button>
        {task.key !== undefined && <a href={href(['calls'], { principal: task.key.id })}>Calls of the key</a>}
        <ConfirmButton action={cancel} question="Cancel it now">
          Cancel
        </ConfirmButton>
      </div>
      {open && <TaskRuns id={task.id} />}
      <ErrorNotice error={cancel.error} />
    </article>
  );
}

function TaskRuns({ id }: { id: string }) {
  const history = useLoad(() => content(api.GET('/schedules/{id}/runs', { params: { path: { id } } })), [id]);
  if (history.data === undefined) {
    return <Loading error={history.error} retry={history.reload} />;
  }
  const { runs } = history.data;
  if (runs.length === 0) {
    return <Empty>It has not run yet.</Empty>;
  }
  return (
    <ul>
      {runs.map((run) => (
        <li key={run.due}>
          {dateTime(run.due)} {run.outcome}: <bdi>{visible(run.result ?? '')}</bdi>
        </li>
      ))}
    </ul>
  );
}
