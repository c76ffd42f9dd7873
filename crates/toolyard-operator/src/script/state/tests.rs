use serde_json::{Value, json};
use toolyard_core::ToolError;

use super::*;

/// What a state is, in a line, and what a caller would be told.
fn shown(state: State) -> String {
    match state {
        State::Waiting(Wait { reason, detail }) => format!("waits: {reason} ({detail})"),
        State::Running => "runs".to_owned(),
        State::Ended(Ending { exit_code, note }) => {
            format!("ended {exit_code}{}", note.map(|note| format!(": {note}")).unwrap_or_default())
        }
        State::Overdue { has_begun } => format!("overdue, {}", if has_begun { "begun" } else { "not begun" }),
        State::NoPackages(exit_code) => format!("no packages: {exit_code}"),
        State::Failed(error) => {
            let error = ToolError::from(error);
            let may_have_run = if error.may_have_run() { "may have run" } else { "has not run" };
            format!("{} {error} ({may_have_run})", error.code().row().wire)
        }
    }
}

#[track_caller]
fn check(status: Value, expected: &str) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": status.clone()});
    assert_eq!(shown(State::of(&serde_json::from_value(pod).unwrap())), expected, "{status}");
}

/// A status with the state of the script's container.
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
fn a_script_waits_for_its_pod() {
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
fn a_script_runs_and_ends() {
    check(script("Running", running()), "runs");
    check(script("Running", ended(0, "Completed")), "ended 0");
    check(script("Succeeded", ended(0, "Completed")), "ended 0");
    check(script("Failed", ended(3, "Error")), "ended 3");
    check(script("Failed", ended(139, "Error")), "ended 139");
    check(script("Failed", ended(137, "OOMKilled")), "ended 137: It took more memory than it may");
}

#[test]
fn an_image_that_cannot_be_had_is_not_waited_for() {
    for reason in HOPELESS {
        let expected = format!("unavailable The script's pod did not start: {reason} (has not run)");
        check(script("Pending", waiting(reason)), &expected);
        check(packages("Pending", waiting(reason)), &expected);
    }
}

#[test]
fn a_program_that_is_not_in_the_image_was_not_started() {
    for reason in UNSTARTED {
        let expected = format!("unavailable The script's pod did not start: {reason} (has not run)");
        check(script("Failed", ended(128, reason)), &expected);
        check(packages("Failed", ended(128, reason)), &expected);
    }
}

#[test]
fn packages_that_cannot_be_installed_are_no_end_of_the_script() {
    check(packages("Failed", ended(1, "Error")), "no packages: 1");
    check(packages("Failed", ended(137, "OOMKilled")), "no packages: 137");
}

fn with_reason(mut status: Value, reason: &str, message: &str) -> Value {
    status["reason"] = reason.into();
    status["message"] = message.into();
    status
}

#[test]
fn a_deadline_is_told_from_an_end() {
    let check = |status, expected| check(with_reason(status, "DeadlineExceeded", "active"), expected);
    check(script("Failed", ended(137, "Error")), "overdue, begun");
    check(script("Failed", running()), "overdue, begun");
    check(script("Failed", waiting("ContainerCreating")), "overdue, not begun");
    check(json!({"phase": "Failed"}), "overdue, not begun");
    // A node makes this of a container that it never had.
    let never = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}});
    check(script("Failed", never), "overdue, not begun");
    check(packages("Failed", ended(137, "Error")), "overdue, not begun");
}

#[test]
fn a_script_that_fills_its_disk_has_ended_by_that() {
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
fn packages_that_fill_the_disk_are_no_end_of_the_script() {
    let message = r#"Usage of EmptyDir volume "packages" exceeds the limit "512Mi". "#;
    let status = with_reason(packages("Failed", ended(137, "Error")), "Evicted", message);
    check(status, "unavailable The script's pod did not start: Evicted (has not run)");
}

#[test]
fn a_node_that_is_lost_leaves_the_end_open() {
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
fn a_node_that_does_not_take_a_pod_has_not_run_it() {
    for reason in ["OutOfcpu", "OutOfmemory", "NodeAffinity", "UnexpectedAdmissionError"] {
        let expected = format!("unavailable The script's pod did not start: {reason} (has not run)");
        check(json!({"phase": "Failed", "reason": reason, "message": "said"}), &expected);
    }
}

#[test]
fn a_pod_that_somebody_else_deletes_is_lost() {
    let pod = json!({
        "metadata": {"deletionTimestamp": "2026-11-01T00:00:00Z"},
        "status": {"phase": "Pending"},
    });
    let state = State::of(&serde_json::from_value(pod).unwrap());
    assert_eq!(shown(state), "unavailable The script's pod was lost: Deleted (may have run)");
}
