use serde_json::{Value, json};
use toolyard_core::ToolError;

use super::*;

/// Formats the progress and the message for callers on one line.
fn describe(state: PodProgress) -> String {
    match state {
        PodProgress::Waiting(WaitReason { reason, detail }) => format!("waits: {reason} ({detail})"),
        PodProgress::Running => "runs".to_owned(),
        PodProgress::Ended(ScriptEnding { exit_code, note }) => {
            format!("ended {exit_code}{}", note.map(|note| format!(": {note}")).unwrap_or_default())
        }
        PodProgress::Overdue { has_begun } => {
            format!("overdue, {}", if has_begun { "begun" } else { "not begun" })
        }
        PodProgress::NoPackages(exit_code) => format!("no packages: {exit_code}"),
        PodProgress::Failed(error) => {
            let error = ToolError::from(error);
            let may_have_run = if error.may_have_run() { "may have run" } else { "has not run" };
            format!("{} {error} ({may_have_run})", error.code().row().wire)
        }
    }
}

#[track_caller]
fn check(status: Value, expected: &str) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": status.clone()});
    assert_eq!(describe(PodProgress::of(&serde_json::from_value(pod).unwrap())), expected, "{status}");
}

/// Returns a status with this state of the script's container.
fn script(phase: &str, state: Value) -> Value {
    json!({"phase": phase, "containerStatuses": [status("script", state)]})
}

fn packages(phase: &str, state: Value) -> Value {
    let waiting = json!({"waiting": {"reason": "PodInitializing"}});
    json!({
        "phase": phase,
        "initContainerStatuses": [status("packages", state)],
        "containerStatuses": [status("script", waiting)],
    })
}

fn status(name: &str, state: Value) -> Value {
    json!({"name": name, "state": state, "ready": false, "restartCount": 0, "image": "", "imageID": ""})
}

fn ended(exit_code: i32, reason: &str) -> Value {
    json!({"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": "2026-11-01T00:00:00Z"}})
}

fn waiting(reason: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": "said"}})
}

fn running() -> Value {
    json!({"running": {"startedAt": "2026-11-01T00:00:00Z"}})
}

#[test]
fn pending_pod_is_waiting() {
    check(json!({}), "waits: Pending ()");
    check(json!({"phase": "Pending"}), "waits: Pending ()");
    let unscheduled = json!([
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"},
    ]);
    check(json!({"phase": "Pending", "conditions": unscheduled}), "waits: Unschedulable (0/3 nodes)");
    check(script("Pending", waiting("ContainerCreating")), "waits: ContainerCreating (said)");
    check(script("Pending", waiting("ErrImagePull")), "waits: ErrImagePull (said)");
    check(packages("Pending", running()), "waits: PodInitializing ()");
    check(packages("Pending", waiting("ErrImagePull")), "waits: ErrImagePull (said)");
    check(packages("Pending", ended(0, "Completed")), "waits: PodInitializing ()");
}

#[test]
fn running_and_ended_scripts_are_recognised() {
    check(script("Running", running()), "runs");
    check(script("Running", ended(0, "Completed")), "ended 0");
    check(script("Succeeded", ended(0, "Completed")), "ended 0");
    check(script("Failed", ended(3, "Error")), "ended 3");
    check(script("Failed", ended(139, "Error")), "ended 139");
    check(script("Failed", ended(137, "OOMKilled")), "ended 137: It exceeded its memory limit");
}

#[test]
fn missing_image_is_a_failure() {
    for reason in PERMANENT_WAIT_REASONS {
        let expected = format!("unavailable The script's pod did not start: {reason} (has not run)");
        check(script("Pending", waiting(reason)), &expected);
        check(packages("Pending", waiting(reason)), &expected);
    }
}

#[test]
fn missing_program_is_a_failed_start() {
    for reason in START_FAILURES {
        let expected = format!("unavailable The script's pod did not start: {reason} (has not run)");
        check(script("Failed", ended(128, reason)), &expected);
        check(packages("Failed", ended(128, reason)), &expected);
    }
}

#[test]
fn failed_packages_are_not_an_end_of_the_script() {
    check(packages("Failed", ended(1, "Error")), "no packages: 1");
    check(packages("Failed", ended(137, "OOMKilled")), "no packages: 137");
}

fn with_reason(mut status: Value, reason: &str, message: &str) -> Value {
    status["reason"] = reason.into();
    status["message"] = message.into();
    status
}

#[test]
fn deadline_differs_from_an_end() {
    let check = |status, expected| check(with_reason(status, "DeadlineExceeded", "active"), expected);
    check(script("Failed", ended(137, "Error")), "overdue, begun");
    check(script("Failed", running()), "overdue, begun");
    check(script("Failed", waiting("ContainerCreating")), "overdue, not begun");
    check(json!({"phase": "Failed"}), "overdue, not begun");
    // A node reports this for a container that it never had.
    let never = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}});
    check(script("Failed", never), "overdue, not begun");
    check(packages("Failed", ended(137, "Error")), "overdue, not begun");
}

#[test]
fn script_evicted_for_its_disk_usage_has_ended() {
    let check = |message, expected| {
        check(with_reason(script("Failed", ended(137, "Error")), "Evicted", message), expected);
    };
    check(
        r#"Usage of EmptyDir volume "scratch" exceeds the limit "64Mi". "#,
        r#"ended 137: Usage of EmptyDir volume "scratch" exceeds the limit "64Mi"."#,
    );
    check(
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
        "ended 137: Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
    );
    check(
        "The node was low on resource: memory. Container script was using 1Gi, which exceeds its request of 0. ",
        "unavailable The script's pod was lost: Evicted (may have run)",
    );
    check("", "unavailable The script's pod was lost: Evicted (may have run)");
}

#[test]
fn packages_evicted_for_disk_usage_are_not_an_end() {
    let message = r#"Usage of EmptyDir volume "packages" exceeds the limit "512Mi". "#;
    let status = with_reason(packages("Failed", ended(137, "Error")), "Evicted", message);
    check(status, "unavailable The script's pod did not start: Evicted (has not run)");
}

#[test]
fn lost_node_leaves_the_outcome_unknown() {
    let lost = |reason: &str| format!("unavailable The script's pod was lost: {reason} (may have run)");
    check(with_reason(script("Running", running()), "NodeLost", "gone"), &lost("NodeLost"));
    for reason in ["Terminated", "NodeShutdown", "Preempting"] {
        check(with_reason(script("Failed", ended(137, "Error")), reason, ""), &lost(reason));
    }
    check(script("Failed", ended(137, "ContainerStatusUnknown")), &lost("ContainerStatusUnknown"));
    check(json!({"phase": "Unknown"}), &lost("Unknown"));
    check(json!({"phase": "Succeeded"}), &lost("Succeeded"));
}

#[test]
fn pod_rejected_by_its_node_has_not_run() {
    for reason in ["OutOfcpu", "OutOfmemory", "NodeAffinity", "UnexpectedAdmissionError"] {
        let expected = format!("unavailable The script's pod did not start: {reason} (has not run)");
        check(json!({"phase": "Failed", "reason": reason, "message": "said"}), &expected);
    }
}

#[test]
fn deleted_pod_is_lost() {
    let pod = json!({
        "metadata": {"deletionTimestamp": "2026-11-01T00:00:00Z"},
        "status": {"phase": "Pending"},
    });
    let state = PodProgress::of(&serde_json::from_value(pod).unwrap());
    assert_eq!(describe(state), "unavailable The script's pod was lost: Deleted (may have run)");
}
