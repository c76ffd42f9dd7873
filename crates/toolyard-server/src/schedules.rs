//! Scheduled tasks: the scheduler, and the records of their runs in the audit trail.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolyard_core::Gateway;
use toolyard_schedule::{EndedRun, RunObserver, Scheduler, Schedules, TaskActions, TaskRunOutcome};

use crate::audit::{AuditActor, AuditQueue, AuditedRun};
use crate::context::GatewayContext;
use crate::keys::{CurrentCallers, KeyCache};
use crate::shutdown::Subsystem;
use crate::start::StartError;

/// The scheduler of a gateway.
pub(crate) struct ScheduleService {
    scheduler: JoinSet<()>,
    stopping: watch::Sender<bool>,
}

/// Records runs in the audit trail.
struct RunAudit {
    audit: Arc<AuditQueue>,
    keys: Arc<KeyCache>,
    /// True if calls are recorded, and runs with them.
    records_calls: bool,
}

/// Starts the scheduler, which fires tasks while the built-in tools have schedules.
///
/// # Errors
/// If the system provides no random bytes.
pub(crate) fn start(
    context: &GatewayContext,
    schedules: &Schedules,
    gateway: &Arc<Gateway>,
    keys: &Arc<KeyCache>,
    callers: &Arc<CurrentCallers>,
) -> Result<ScheduleService, StartError> {
    let actions = TaskActions::new(Arc::downgrade(gateway), callers.clone());
    let actions = actions.publishing(crate::bus::publisher(&context.process.bus));
    let records_calls = context.process.audit.enabled;
    let observer = Arc::new(RunAudit { audit: context.audit.clone(), keys: keys.clone(), records_calls });
    let scheduler = Scheduler::new(schedules.clone(), actions, observer).map_err(StartError::Schedules)?;
    let (stopping, stopped) = watch::channel(false);
    let drain = context.process.timeouts.drain;
    let mut tasks = JoinSet::new();
    tasks.spawn(scheduler.run(stopped, drain));
    Ok(ScheduleService { scheduler: tasks, stopping })
}

impl Subsystem for ScheduleService {
    fn stop(mut self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stopping.send_replace(true);
            // The scheduler gives its runs the drain time.
            while self.scheduler.join_next().await.is_some() {}
        })
    }
}

impl RunObserver for RunAudit {
    fn ended(&self, run: EndedRun<'_>) {
        if !self.records_calls {
            return;
        }
        let EndedRun { id, owner, task, outcome, took } = run;
        let key = owner.key_id().and_then(|id| self.keys.id_and_name(id));
        let actor = AuditActor {
            principal: owner.key_id().map(Into::into),
            key_name: key.map(|key| key.1.clone()),
            ..AuditActor::default()
        };
        let outcome = match outcome {
            TaskRunOutcome::Succeeded => "ok",
            other => other.word(),
        };
        self.audit.record_run(AuditedRun { actor, id: id.to_owned(), task: task.to_owned(), outcome, took });
    }
}
