//! Progress of a pod, derived from its status. This pure function is the only place that knows the reasons of kubelets.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus,
};

use super::pod::{PACKAGES_CONTAINER, SCRIPT_CONTAINER};
use crate::error::OperatorError;

/// Progress of a pod.
#[derive(Debug)]
pub(crate) enum PodProgress {
    /// The script has not started, for this reason.
    Waiting(WaitReason),
    /// The script is running.
    Running,
    /// The script has ended.
    Ended(ScriptEnding),
    /// The pod reached its deadline. `has_begun` is the last knowledge of its node.
    Overdue { has_begun: bool },
    /// The installation of packages failed with this exit status of pip.
    NoPackages(i32),
    /// The script will not run, or its outcome will not be known.
    Failed(OperatorError),
}

/// Reason why a script has not started, with the message of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitReason {
    pub(crate) reason: String,
    pub(crate) detail: String,
}

/// End of a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScriptEnding {
    pub(crate) exit_code: i32,
    /// Reason, if the script was ended by the system.
    pub(crate) note: Option<String>,
}

/// Exit status after SIGKILL.
const KILLED_STATUS: i32 = 137;

/// Reasons that waiting does not resolve. `ErrImagePull` is not among them: it is retried, and becomes
/// `ImagePullBackOff` after another failure.
const PERMANENT_WAIT_REASONS: [&str; 9] = [
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

/// Reasons why a created container did not start, such as a missing program in its image.
const START_FAILURES: [&str; 3] = ["ContainerCannotRun", "ContainerCannotStart", "StartError"];

impl PodProgress {
    pub(crate) fn of(pod: &Pod) -> Self {
        let Some(status) = &pod.status else { return Self::Waiting(WaitReason::new("Pending", "")) };
        let script = container(status.container_statuses.as_deref(), SCRIPT_CONTAINER);
        let packages = container(status.init_container_statuses.as_deref(), PACKAGES_CONTAINER);
        if let Some(state) = progress_of_pod(status, script) {
            return state;
        }
        if let Some(ended) = terminated(packages).filter(|ended| ended.exit_code != 0) {
            return progress_of_packages(ended);
        }
        if let Some(state) = script.into_iter().chain(packages).find_map(progress_of_container) {
            return state;
        }
        if pod.metadata.deletion_timestamp.is_some() {
            return Self::Failed(lost("Deleted", "it was deleted by another client"));
        }
        match status.phase.as_deref() {
            Some("Succeeded" | "Failed" | "Unknown") => {
                Self::Failed(lost(status.phase.as_deref().unwrap_or_default(), "its container has no status"))
            }
            _ => Self::Waiting(wait_reason(status, script, packages)),
        }
    }
}

impl WaitReason {
    fn new(reason: &str, detail: &str) -> Self {
        Self { reason: reason.to_owned(), detail: detail.to_owned() }
    }
}

/// Progress according to the pod as a whole, which takes precedence over its containers: their status may be missing.
fn progress_of_pod(status: &PodStatus, script: Option<&ContainerStatus>) -> Option<PodProgress> {
    let has_failed = status.phase.as_deref() == Some("Failed");
    let detail = status.message.as_deref().unwrap_or_default();
    match status.reason.as_deref()? {
        "DeadlineExceeded" => Some(PodProgress::Overdue { has_begun: has_begun(script) }),
        "Evicted" if is_own_fault(detail) && has_begun(script) => Some(PodProgress::Ended(ScriptEnding {
            exit_code: KILLED_STATUS,
            note: Some(detail.trim().to_owned()),
        })),
        "NodeLost" => Some(PodProgress::Failed(lost("NodeLost", detail))),
        reason if has_failed && has_begun(script) => Some(PodProgress::Failed(lost(reason, detail))),
        reason if has_failed => Some(PodProgress::Failed(not_started(reason, detail))),
        _ => None,
    }
}

/// True if a pod was evicted for its own disk usage, and not because the node is full.
fn is_own_fault(message: &str) -> bool {
    message.contains("exceed") && !message.starts_with("The node ")
}

fn progress_of_container(status: &ContainerStatus) -> Option<PodProgress> {
    let ContainerState { running, terminated, waiting } = status.state.as_ref()?;
    if let Some(waiting) = waiting {
        let reason = waiting.reason.as_deref().filter(|reason| PERMANENT_WAIT_REASONS.contains(reason))?;
        return Some(PodProgress::Failed(not_started(
            reason,
            waiting.message.as_deref().unwrap_or_default(),
        )));
    }
    // A terminated init container has installed the packages.
    if status.name != SCRIPT_CONTAINER {
        return None;
    }
    terminated.as_ref().map(progress_of_end).or_else(|| running.as_ref().map(|_| PodProgress::Running))
}

fn progress_of_end(container: &ContainerStateTerminated) -> PodProgress {
    let reason = container.reason.as_deref().unwrap_or_default();
    let detail = container.message.as_deref().unwrap_or_default();
    let exit_code = container.exit_code;
    match reason {
        reason if START_FAILURES.contains(&reason) => PodProgress::Failed(not_started(reason, detail)),
        // A node without knowledge of a container invents the exit status.
        "ContainerStatusUnknown" => PodProgress::Failed(lost(reason, detail)),
        "OOMKilled" => PodProgress::Ended(ScriptEnding {
            exit_code,
            note: Some("It exceeded its memory limit".to_owned()),
        }),
        _ => PodProgress::Ended(ScriptEnding { exit_code, note: None }),
    }
}

fn progress_of_packages(container: &ContainerStateTerminated) -> PodProgress {
    match progress_of_end(container) {
        PodProgress::Ended(ending) => PodProgress::NoPackages(ending.exit_code),
        failed => failed,
    }
}

fn wait_reason(
    status: &PodStatus,
    script: Option<&ContainerStatus>,
    packages: Option<&ContainerStatus>,
) -> WaitReason {
    let waiting = packages.into_iter().chain(script).find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        Some(WaitReason::new(waiting.reason.as_deref()?, waiting.message.as_deref().unwrap_or_default()))
    });
    let is_unscheduled =
        |condition: &&PodCondition| condition.type_ == "PodScheduled" && condition.status == "False";
    let unscheduled = status.conditions.iter().flatten().find(is_unscheduled).map(|condition| {
        let reason = condition.reason.as_deref().unwrap_or("Unschedulable");
        WaitReason::new(reason, condition.message.as_deref().unwrap_or_default())
    });
    waiting.or(unscheduled).unwrap_or_else(|| WaitReason::new("Pending", ""))
}

fn container<'a>(statuses: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerStatus> {
    statuses?.iter().find(|status| status.name == name)
}

fn terminated(status: Option<&ContainerStatus>) -> Option<&ContainerStateTerminated> {
    status?.state.as_ref()?.terminated.as_ref()
}

/// True if the script has started. A node without a container to end reports an end without a start time.
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
