//! How far a pod is, read from what its node says of it. A function of the pod, and the one place that knows the
//! words of kubelets.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus,
};

use super::pod::{PACKAGES, SCRIPT};
use crate::error::OperatorError;

/// How far a pod is.
#[derive(Debug)]
pub(crate) enum State {
    /// The script has not begun, because of this.
    Waiting(Wait),
    /// The script runs.
    Running,
    /// The script has ended.
    Ended(Ending),
    /// The pod was ended at its deadline. Whether its script had begun is what its node knew then.
    Overdue { has_begun: bool },
    /// The packages were not installed: pip's exit status.
    NoPackages(i32),
    /// The script will not run, or its end will not be known.
    Failed(OperatorError),
}

/// Why a script has not begun: a word of Kubernetes, and what it says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: String,
    pub(crate) detail: String,
}

/// How a script has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) exit_code: i32,
    /// Why it was ended, where it did not end by itself.
    pub(crate) note: Option<String>,
}

/// The exit status of what SIGKILL has ended.
const KILLED: i32 = 137;

/// What becomes of no image and of no container by waiting. `ErrImagePull` is not among them: it is tried again, and
/// is `ImagePullBackOff` when that has failed, too.
const HOPELESS: [&str; 9] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RegistryUnavailable",
    "RunContainerError",
    "SignatureValidationFailed",
];

/// Why a container that was made did not begin: there is no such program in its image, for one.
const UNSTARTED: [&str; 3] = ["ContainerCannotRun", "ContainerCannotStart", "StartError"];

impl State {
    pub(crate) fn of(pod: &Pod) -> Self {
        let Some(status) = &pod.status else { return Self::Waiting(Wait::new("Pending", "")) };
        let script = container(status.container_statuses.as_deref(), SCRIPT);
        let packages = container(status.init_container_statuses.as_deref(), PACKAGES);
        if let Some(state) = of_pod(status, script) {
            return state;
        }
        if let Some(ended) = terminated(packages).filter(|ended| ended.exit_code != 0) {
            return ended_packages(ended);
        }
        if let Some(state) = script.into_iter().chain(packages).find_map(of_container) {
            return state;
        }
        if pod.metadata.deletion_timestamp.is_some() {
            return Self::Failed(lost("Deleted", "somebody else has deleted it"));
        }
        match status.phase.as_deref() {
            Some("Succeeded" | "Failed" | "Unknown") => {
                Self::Failed(lost(status.phase.as_deref().unwrap_or_default(), "its container has no state"))
            }
            _ => Self::Waiting(wait(status, script, packages)),
        }
    }
}

impl Wait {
    fn new(reason: &str, detail: &str) -> Self {
        Self { reason: reason.to_owned(), detail: detail.to_owned() }
    }
}

/// What the whole pod has come to, whatever its containers say: they may say nothing any more.
fn of_pod(status: &PodStatus, script: Option<&ContainerStatus>) -> Option<State> {
    let has_failed = status.phase.as_deref() == Some("Failed");
    let detail = status.message.as_deref().unwrap_or_default();
    match status.reason.as_deref()? {
        "DeadlineExceeded" => Some(State::Overdue { has_begun: has_begun(script) }),
        "Evicted" if is_own_fault(detail) && has_begun(script) => {
            Some(State::Ended(Ending { exit_code: KILLED, note: Some(detail.trim().to_owned()) }))
        }
        "NodeLost" => Some(State::Failed(lost("NodeLost", detail))),
        reason if has_failed && has_begun(script) => Some(State::Failed(lost(reason, detail))),
        reason if has_failed => Some(State::Failed(not_started(reason, detail))),
        _ => None,
    }
}

/// A pod is evicted when it fills its disk, and when others have filled the node's.
fn is_own_fault(message: &str) -> bool {
    message.contains("exceed") && !message.starts_with("The node ")
}

fn of_container(status: &ContainerStatus) -> Option<State> {
    let ContainerState { running, terminated, waiting } = status.state.as_ref()?;
    if let Some(waiting) = waiting {
        let reason = waiting.reason.as_deref().filter(|reason| HOPELESS.contains(reason))?;
        return Some(State::Failed(not_started(reason, waiting.message.as_deref().unwrap_or_default())));
    }
    // What is left of a container of packages was installed.
    if status.name != SCRIPT {
        return None;
    }
    terminated.as_ref().map(ended).or_else(|| running.as_ref().map(|_| State::Running))
}

fn ended(container: &ContainerStateTerminated) -> State {
    let reason = container.reason.as_deref().unwrap_or_default();
    let detail = container.message.as_deref().unwrap_or_default();
    let exit_code = container.exit_code;
    match reason {
        reason if UNSTARTED.contains(&reason) => State::Failed(not_started(reason, detail)),
        // A node that has forgotten a container makes an exit status up.
        "ContainerStatusUnknown" => State::Failed(lost(reason, detail)),
        "OOMKilled" => {
            State::Ended(Ending { exit_code, note: Some("It took more memory than it may".to_owned()) })
        }
        _ => State::Ended(Ending { exit_code, note: None }),
    }
}

fn ended_packages(container: &ContainerStateTerminated) -> State {
    match ended(container) {
        State::Ended(ending) => State::NoPackages(ending.exit_code),
        failed => failed,
    }
}

fn wait(status: &PodStatus, script: Option<&ContainerStatus>, packages: Option<&ContainerStatus>) -> Wait {
    let waiting = packages.into_iter().chain(script).find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        Some(Wait::new(waiting.reason.as_deref()?, waiting.message.as_deref().unwrap_or_default()))
    });
    let is_unscheduled =
        |condition: &&PodCondition| condition.type_ == "PodScheduled" && condition.status == "False";
    let unscheduled = status.conditions.iter().flatten().find(is_unscheduled).map(|condition| {
        let reason = condition.reason.as_deref().unwrap_or("Unschedulable");
        Wait::new(reason, condition.message.as_deref().unwrap_or_default())
    });
    waiting.or(unscheduled).unwrap_or_else(|| Wait::new("Pending", ""))
}

fn container<'a>(statuses: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerStatus> {
    statuses?.iter().find(|status| status.name == name)
}

fn terminated(status: Option<&ContainerStatus>) -> Option<&ContainerStateTerminated> {
    status?.state.as_ref()?.terminated.as_ref()
}

/// A node that has no container to end says that it has ended, at no time.
fn has_begun(script: Option<&ContainerStatus>) -> bool {
    let is_running = |status: &ContainerStatus| status.state.as_ref()?.running.as_ref().map(drop);
    terminated(script).is_some_and(|ended| ended.started_at.is_some())
        || script.and_then(is_running).is_some()
}

fn lost(reason: &str, detail: &str) -> OperatorError {
    OperatorError::Lost { reason: reason.to_owned(), detail: detail.to_owned().into() }
}

fn not_started(reason: &str, detail: &str) -> OperatorError {
    OperatorError::NotStarted { reason: reason.to_owned(), detail: detail.to_owned().into() }
}

#[cfg(test)]
mod tests;
