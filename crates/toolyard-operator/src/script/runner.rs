//! Runs scripts in pods: each is made, watched until its end, read, and deleted.

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
use toolyard_core::script::{Runner, Script, ScriptOutcome, TIMED_OUT};

use super::cleaner::{self, Cleaner};
use super::options::PodOptions;
use super::output;
use super::pod::{self, LONGEST_LIFE, PACKAGES, SCRIPT, deadline, pod};
use super::sightings::{ANSWER, Sightings};
use super::state::{Ending, State, Wait};
use crate::error::OperatorError;

/// How long a node may take to tell of an end.
const GRACE: Duration = Duration::from_secs(5);

/// Runs scripts in pods of a cluster. What a script writes to its standard error stands in its output: a pod has one
/// log.
pub struct PodRunner {
    pods: Api<Pod>,
    options: Arc<PodOptions>,
    places: Arc<Semaphore>,
    cleaner: Cleaner,
}

impl PodRunner {
    /// A runner, which deletes at once what an earlier one has left behind. It needs a Tokio runtime, and keeps a task
    /// there until it is dropped.
    ///
    /// # Errors
    /// [`OperatorError::Option`] when the options make no sense.
    pub fn new(client: Client, options: PodOptions) -> Result<Self, OperatorError> {
        options.check()?;
        let pods = Api::namespaced(client, &options.namespace);
        let places = Arc::new(Semaphore::new(options.concurrent));
        let options = Arc::new(options);
        let cleaner = Cleaner::start(pods.clone(), options.clone());
        Ok(Self { pods, options, places, cleaner })
    }

    /// Asks the cluster whether it would take the pod of a script, and makes none.
    ///
    /// # Errors
    /// When it would not, or cannot be reached.
    pub async fn check(&self) -> Result<(), OperatorError> {
        let script = Script {
            call_id: "check".to_owned(),
            source: "print()".to_owned(),
            input: None,
            timeout: Duration::from_secs(1),
            packages: vec!["pip".to_owned()],
        };
        let params = PostParams { dry_run: true, ..PostParams::default() };
        self.create(&pod(&script, &self.options, &guid()?), &params).await.map(drop)
    }

    /// Deletes the pods of this gateway's name that nobody can wait for any more, and says how many. It happens by
    /// itself at the start, and every five minutes.
    ///
    /// # Errors
    /// When the cluster cannot be reached, or does not let us.
    pub async fn sweep(&self) -> Result<usize, OperatorError> {
        cleaner::sweep(&self.pods, &self.options).await
    }

    /// Waits until no pod is left of scripts that have ended, or that nobody waits for, but not longer than `limit`.
    /// Says whether none is. What is left goes with its deadline, and the next runner deletes it.
    pub async fn drained(&self, limit: Duration) -> bool {
        let all = u32::try_from(self.options.concurrent).unwrap_or(u32::MAX);
        timeout(limit, self.places.acquire_many(all)).await.is_ok()
    }

    async fn run_to_end(&self, script: &Script) -> Result<ScriptOutcome, OperatorError> {
        let begun = Instant::now();
        pod::check(script)?;
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| OperatorError::Busy(self.options.concurrent))?;
        let pod = pod(script, &self.options, &guid()?);
        let name = pod.metadata.name.clone().unwrap_or_default();

        let mut debt = self.cleaner.owe(name.clone(), place);
        let created = match self.create(&pod, &PostParams::default()).await {
            Ok(created) => created,
            Err(error) => {
                if !matches!(error, OperatorError::Unreachable(_)) {
                    debt.forget();
                }
                return Err(error);
            }
        };
        let outcome = self.outcome(script, &name, &created, begun).await;
        debt.settle().await;
        outcome
    }

    async fn create(&self, pod: &Pod, params: &PostParams) -> Result<Pod, OperatorError> {
        let created = timeout(ANSWER, self.pods.create(params, pod)).await;
        created.map_err(|late| OperatorError::Unreachable(late.into()))?.map_err(OperatorError::of)
    }

    async fn outcome(
        &self,
        script: &Script,
        name: &str,
        created: &Pod,
        begun: Instant,
    ) -> Result<ScriptOutcome, OperatorError> {
        let ending = self.ending(script, name, created).await?;
        let output = output::of_script(&self.pods, name, SCRIPT, self.options.output_bytes).await;
        // A script that was ended has written what it has, if anybody can still read that.
        let output = if ending.exit_code == TIMED_OUT { output.unwrap_or_default() } else { output? };
        Ok(ScriptOutcome {
            output,
            stderr: ending.note.unwrap_or_default(),
            exit_code: ending.exit_code,
            elapsed: begun.elapsed(),
        })
    }

    /// Waits until a script has ended, or is to be.
    async fn ending(&self, script: &Script, name: &str, created: &Pod) -> Result<Ending, OperatorError> {
        let mut wait = Waiting::new(script, &self.options);
        let mut sightings = Sightings::begin(&self.pods, name, created).await;
        let mut state = State::of(created);
        loop {
            if let Some(ending) = self.judge(state, &mut wait, name).await {
                return ending;
            }
            state = match timeout_at(wait.until, sightings.next()).await {
                Ok(Ok(Some(pod))) => State::of(&pod),
                Ok(Ok(None)) => return Err(gone()),
                Ok(Err(error)) => return Err(error),
                Err(_) => return self.last_look(sightings, wait, name).await,
            };
        }
    }

    /// What a state comes to; nothing where it is to be waited.
    async fn judge(
        &self,
        state: State,
        wait: &mut Waiting,
        name: &str,
    ) -> Option<Result<Ending, OperatorError>> {
        match state {
            State::Waiting(reason) => wait.has_not_begun(reason),
            State::Running => wait.has_begun(),
            State::Ended(ending) => return Some(Ok(ending)),
            State::Overdue { has_begun } => {
                if has_begun {
                    wait.has_begun();
                }
                return Some(wait.over());
            }
            State::NoPackages(exit_code) => {
                let log = output::of_packages(&self.pods, name, PACKAGES).await.unwrap_or_default();
                return Some(Err(OperatorError::Packages { exit_code, log }));
            }
            State::Failed(error) => return Some(Err(wait.known(error))),
        }
        None
    }

    /// A watch may have been silent for other reasons than that there was nothing to say.
    async fn last_look(
        &self,
        mut sightings: Sightings<'_>,
        mut wait: Waiting,
        name: &str,
    ) -> Result<Ending, OperatorError> {
        let trouble = sightings.trouble();
        match sightings.look().await {
            Ok(Some(pod)) => {
                self.judge(State::of(&pod), &mut wait, name).await.unwrap_or_else(|| wait.over())
            }
            Ok(None) => Err(gone()),
            Err(error) => Err(trouble.unwrap_or(error)),
        }
    }
}

impl Runner for PodRunner {
    fn run(&self, script: Script) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        async move { self.run_to_end(&script).await.map_err(ToolError::from) }.boxed()
    }
}

/// How long is waited for a script, and what for.
struct Waiting {
    until: Instant,
    timeout: Duration,
    /// Whether its pod may take longer than the script, so that the script has a time of its own.
    has_allowance: bool,
    /// Why it has not begun; nothing once it has.
    reason: Option<Wait>,
}

impl Waiting {
    fn new(script: &Script, options: &PodOptions) -> Self {
        Self {
            until: Instant::now() + deadline(script, options) + GRACE,
            timeout: script.timeout.min(LONGEST_LIFE),
            has_allowance: !options.allowance(&script.packages).is_zero(),
            reason: Some(Wait { reason: "Pending".to_owned(), detail: String::new() }),
        }
    }

    fn has_not_begun(&mut self, reason: Wait) {
        if self.reason.is_some() {
            self.reason = Some(reason);
        }
    }

    fn has_begun(&mut self) {
        if self.reason.take().is_some() && self.has_allowance {
            self.until = self.until.min(Instant::now() + self.timeout);
        }
    }

    /// A node that has lost a container does not say that it has begun.
    fn known(&self, error: OperatorError) -> OperatorError {
        match error {
            OperatorError::NotStarted { reason, detail } if self.reason.is_none() => {
                OperatorError::Lost { reason, detail }
            }
            error => error,
        }
    }

    /// What it comes to that the time is over.
    fn over(&self) -> Result<Ending, OperatorError> {
        match &self.reason {
            None => {
                let note = Some(format!("It took longer than {} s", self.timeout.as_secs_f64()));
                Ok(Ending { exit_code: TIMED_OUT, note })
            }
            Some(Wait { reason, detail }) => {
                Err(OperatorError::NotStarted { reason: reason.clone(), detail: detail.clone().into() })
            }
        }
    }
}

fn gone() -> OperatorError {
    OperatorError::Lost { reason: "Deleted".to_owned(), detail: "somebody else has deleted it".into() }
}

/// What no other pod has in its name.
fn guid() -> Result<String, OperatorError> {
    let random = getrandom::u64().and_then(|high| Ok((high, getrandom::u64()?)));
    let (high, low) = random.map_err(|error| OperatorError::Option(format!("No random number: {error}")))?;
    Ok(format!("{high:016x}{low:016x}"))
}
