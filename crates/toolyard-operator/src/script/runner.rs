//! Runner of scripts in pods: creates a pod, observes it until its end, reads the output, and deletes it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::ToolError;
use toolyard_core::script::{PythonScript, ScriptExecutor, ScriptOutcome, TIMED_OUT};

use super::cleaner::{self, PodCleaner};
use super::observer::{ANSWER_TIMEOUT, PodObserver};
use super::options::PodOptions;
use super::output;
use super::pod::{self, MAX_LIFETIME, PACKAGES_CONTAINER, SCRIPT_CONTAINER, deadline, pod};
use super::state::{PodProgress, ScriptEnding, WaitReason};
use crate::error::OperatorError;

/// Time for a node to report the end of a pod.
const GRACE: Duration = Duration::from_secs(5);

/// Runs scripts in pods of a cluster. Standard error is a part of the output, because a container has a single log.
pub struct PodRunner {
    pods: Api<Pod>,
    options: Arc<PodOptions>,
    permits: Arc<Semaphore>,
    cleaner: PodCleaner,
}

impl PodRunner {
    /// Creates a runner, which deletes pods of previous runners at once. Requires a Tokio runtime, in which a task runs
    /// until the runner is dropped.
    ///
    /// # Errors
    /// [`OperatorError::Option`] if an option is invalid.
    pub fn new(client: Client, options: PodOptions) -> Result<Self, OperatorError> {
        options.check()?;
        let pods = Api::namespaced(client, &options.namespace);
        let permits = Arc::new(Semaphore::new(options.concurrent));
        let options = Arc::new(options);
        let cleaner = PodCleaner::start(pods.clone(), options.clone());
        Ok(Self { pods, options, permits, cleaner })
    }

    /// Checks with a dry run that the cluster accepts the pod of a script.
    ///
    /// # Errors
    /// If the cluster rejects the pod, or cannot be reached.
    pub async fn check(&self) -> Result<(), OperatorError> {
        let script = PythonScript {
            call_id: "check".to_owned(),
            source: "print()".to_owned(),
            input: None,
            timeout: Duration::from_secs(1),
            packages: vec!["pip".to_owned()],
            trace_parent: None,
        };
        let params = PostParams { dry_run: true, ..PostParams::default() };
        self.create(&pod(&script, &self.options, &guid()?), &params).await.map(drop)
    }

    /// Deletes orphaned pods of this gateway's name and returns their number. This also happens at the start and every
    /// five minutes.
    ///
    /// # Errors
    /// If the cluster cannot be reached, or denies the request.
    pub async fn sweep(&self) -> Result<usize, OperatorError> {
        cleaner::sweep(&self.pods, &self.options).await
    }

    /// Waits at most `limit` until all pods of ended and cancelled scripts are deleted; returns true if they are.
    /// Remaining pods end at their deadline, and the next runner deletes them.
    pub async fn wait_until_drained(&self, limit: Duration) -> bool {
        let all = u32::try_from(self.options.concurrent).unwrap_or(u32::MAX);
        timeout(limit, self.permits.acquire_many(all)).await.is_ok()
    }

    async fn run_to_end(&self, script: &PythonScript) -> Result<ScriptOutcome, OperatorError> {
        let started_at = Instant::now();
        pod::check(script)?;
        let permit = self.permits.clone().try_acquire_owned();
        let permit = permit.map_err(|_| OperatorError::Busy(self.options.concurrent))?;
        let pod = pod(script, &self.options, &guid()?);
        let name = pod.metadata.name.clone().unwrap_or_default();

        let mut deletion = self.cleaner.register(name.clone(), permit);
        let created = match self.create(&pod, &PostParams::default()).await {
            Ok(created) => created,
            Err(error) => {
                if !matches!(error, OperatorError::Unreachable(_)) {
                    deletion.cancel();
                }
                return Err(error);
            }
        };
        let outcome = self.outcome(script, &name, &created, started_at).await;
        deletion.delete_now().await;
        outcome
    }

    async fn create(&self, pod: &Pod, params: &PostParams) -> Result<Pod, OperatorError> {
        let created = timeout(ANSWER_TIMEOUT, self.pods.create(params, pod)).await;
        created.map_err(|late| OperatorError::Unreachable(late.into()))?.map_err(OperatorError::from_create)
    }

    async fn outcome(
        &self,
        script: &PythonScript,
        name: &str,
        created: &Pod,
        started_at: Instant,
    ) -> Result<ScriptOutcome, OperatorError> {
        let ending = self.ending(script, name, created).await?;
        let output =
            output::read_script_output(&self.pods, name, SCRIPT_CONTAINER, self.options.output_bytes).await;
        // The output of a timed-out script is kept if it can still be read.
        let output = if ending.exit_code == TIMED_OUT { output.unwrap_or_default() } else { output? };
        Ok(ScriptOutcome {
            output,
            stderr: ending.note.unwrap_or_default(),
            exit_code: ending.exit_code,
            elapsed: started_at.elapsed(),
        })
    }

    /// Waits until a script has ended or timed out.
    async fn ending(
        &self,
        script: &PythonScript,
        name: &str,
        created: &Pod,
    ) -> Result<ScriptEnding, OperatorError> {
        let mut wait = ScriptWait::new(script, &self.options);
        let mut observer = PodObserver::start(&self.pods, name, created).await;
        let mut state = PodProgress::of(created);
        loop {
            if let Some(ending) = self.handle_progress(state, &mut wait, name).await {
                return ending;
            }
            state = match timeout_at(wait.until, observer.next()).await {
                Ok(Ok(Some(pod))) => PodProgress::of(&pod),
                Ok(Ok(None)) => return Err(deleted_externally()),
                Ok(Err(error)) => return Err(error),
                Err(_) => return self.check_once_more(observer, wait, name).await,
            };
        }
    }

    /// Handles a change of progress; `None` to continue waiting.
    async fn handle_progress(
        &self,
        state: PodProgress,
        wait: &mut ScriptWait,
        name: &str,
    ) -> Option<Result<ScriptEnding, OperatorError>> {
        match state {
            PodProgress::Waiting(reason) => wait.set_waiting(reason),
            PodProgress::Running => wait.set_started(),
            PodProgress::Ended(ending) => return Some(Ok(ending)),
            PodProgress::Overdue { has_begun } => {
                if has_begun {
                    wait.set_started();
                }
                return Some(wait.timed_out());
            }
            PodProgress::NoPackages(exit_code) => {
                let log =
                    output::read_package_log(&self.pods, name, PACKAGES_CONTAINER).await.unwrap_or_default();
                return Some(Err(OperatorError::Packages { exit_code, log }));
            }
            PodProgress::Failed(error) => return Some(Err(wait.with_start_known(error))),
        }
        None
    }

    /// Reads the pod once more, because the watch may have missed events.
    async fn check_once_more(
        &self,
        mut observer: PodObserver<'_>,
        mut wait: ScriptWait,
        name: &str,
    ) -> Result<ScriptEnding, OperatorError> {
        let earlier_error = observer.take_error();
        match observer.read_pod().await {
            Ok(Some(pod)) => self
                .handle_progress(PodProgress::of(&pod), &mut wait, name)
                .await
                .unwrap_or_else(|| wait.timed_out()),
            Ok(None) => Err(deleted_externally()),
            Err(error) => Err(earlier_error.unwrap_or(error)),
        }
    }
}

impl ScriptExecutor for PodRunner {
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        async move { self.run_to_end(&script).await.map_err(ToolError::from) }.boxed()
    }
}

/// Deadline of a script, and the reason why it has not started.
struct ScriptWait {
    until: Instant,
    timeout: Duration,
    /// True if the pod has additional time, so that the script has a time limit of its own.
    has_allowance: bool,
    /// Reason why the script has not started; `None` after its start.
    wait_reason: Option<WaitReason>,
}

impl ScriptWait {
    fn new(script: &PythonScript, options: &PodOptions) -> Self {
        Self {
            until: Instant::now() + deadline(script, options) + GRACE,
            timeout: script.timeout.min(MAX_LIFETIME),
            has_allowance: !options.allowance(&script.packages).is_zero(),
            wait_reason: Some(WaitReason { reason: "Pending".to_owned(), detail: String::new() }),
        }
    }

    fn set_waiting(&mut self, reason: WaitReason) {
        if self.wait_reason.is_some() {
            self.wait_reason = Some(reason);
        }
    }

    fn set_started(&mut self) {
        if self.wait_reason.take().is_some() && self.has_allowance {
            self.until = self.until.min(Instant::now() + self.timeout);
        }
    }

    /// Corrects an error of a node that has lost a container and does not know that it had started.
    fn with_start_known(&self, error: OperatorError) -> OperatorError {
        match error {
            OperatorError::NotStarted { reason, detail } if self.wait_reason.is_none() => {
                OperatorError::Lost { reason, detail }
            }
            error => error,
        }
    }

    /// Result when the time limit is reached.
    fn timed_out(&self) -> Result<ScriptEnding, OperatorError> {
        match &self.wait_reason {
            None => {
                let note = Some(format!("It exceeded its time limit of {} s", self.timeout.as_secs_f64()));
                Ok(ScriptEnding { exit_code: TIMED_OUT, note })
            }
            Some(WaitReason { reason, detail }) => {
                Err(OperatorError::NotStarted { reason: reason.clone(), detail: detail.clone().into() })
            }
        }
    }
}

fn deleted_externally() -> OperatorError {
    OperatorError::Lost { reason: "Deleted".to_owned(), detail: "it was deleted by another client".into() }
}

/// Returns a random number for the name of a pod.
fn guid() -> Result<String, OperatorError> {
    let random = getrandom::u64().and_then(|high| Ok((high, getrandom::u64()?)));
    let (high, low) =
        random.map_err(|error| OperatorError::Option(format!("cannot get a random number: {error}")))?;
    Ok(format!("{high:016x}{low:016x}"))
}
