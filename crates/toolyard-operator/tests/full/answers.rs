//! Results of scripts for all responses of a cluster.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_core::ToolError;
use toolyard_core::script::{PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_operator::PodOptions;

use crate::mock::{Answer, MockCluster, ended, pod_response, refused, running, status, watch_events};
use crate::script;

const CREATE: &str = "POST ?";
const WATCH: &str = "GET ?&watch";
const LOOK: &str = "GET /NAME";
const LOG: &str = "GET /NAME/log";
const DELETE: &str = "DELETE /NAME";

/// A cluster in which a script succeeds, except for the responses of `other`.
fn cluster(other: impl Fn(&str, usize) -> Option<Answer> + Send + 'static) -> MockCluster {
    MockCluster::new(move |requests, before| {
        if let Some(answer) = other(requests, before) {
            return answer;
        }
        match requests {
            _ if requests.starts_with(CREATE) => pod_response(&json!({})),
            _ if requests.starts_with(WATCH) => watch_events(&[running(), ended(0)]),
            _ if requests.starts_with(LOG) => Some((200, b"1\n".to_vec())),
            _ if requests.starts_with(DELETE) => pod_response(&json!({})),
            _ => pod_response(&running()),
        }
    })
}

fn describe(outcome: Result<ScriptOutcome, ToolError>) -> String {
    match outcome {
        Ok(ScriptOutcome { output, stderr, exit_code, .. }) => format!("{exit_code} {output:?} {stderr:?}"),
        Err(error) => {
            let has_run = if error.may_have_run() { "may have run" } else { "has not run" };
            format!("{} {error} ({has_run})", error.code().row().wire)
        }
    }
}

async fn run(cluster: &MockCluster, script: PythonScript) -> String {
    describe(cluster.runner(PodOptions::default()).run(script).await)
}

#[track_caller]
fn check_outcome(text: &str, expected: &str) {
    assert_eq!(text, expected);
}

#[tokio::test(start_paused = true)]
async fn script_needs_four_requests() {
    let cluster = cluster(|_, _| None);
    assert_eq!(run(&cluster, script("a")).await, r#"0 "1\n" """#);
    insta::assert_snapshot!(cluster.requests().join("\n"), @r#"
    POST ?
    GET ?&watch=true&timeoutSeconds=30&fieldSelector=metadata.name%3DNAME&allowWatchBookmarks=true&resourceVersion=7
    GET /NAME/log?&container=script&limitBytes=1048576
    DELETE /NAME?
    "#);
}

#[tokio::test(start_paused = true)]
async fn failed_creation_is_an_error() {
    for (code, message, expected) in [
        (403, "pods is forbidden", "execution_failed The cluster rejected the script's pod (has not run)"),
        (
            403,
            "exceeded quota: scripts",
            "overloaded The cluster has no room for another script (has not run)",
        ),
        (401, "Unauthorized", "execution_failed The cluster rejected the script's pod (has not run)"),
        (404, "no namespace", "execution_failed The cluster rejected the script's pod (has not run)"),
        (422, "invalid", "execution_failed The cluster rejected the script's pod (has not run)"),
        (413, "large", "invalid_arguments The script is too long for the cluster (has not run)"),
        (429, "busy", "overloaded The cluster has no room for another script (has not run)"),
    ] {
        let cluster =
            cluster(move |requests, _| requests.starts_with(CREATE).then(|| refused(code, message)));
        check_outcome(&run(&cluster, script("a")).await, expected);
        assert_eq!(cluster.requests().len(), 1, "{:?}", cluster.requests());
    }
}

#[tokio::test(start_paused = true)]
async fn pod_of_an_unanswered_creation_is_deleted() {
    for answer in [refused(500, "broken"), refused(503, "away"), None] {
        let cluster = cluster(move |requests, _| requests.starts_with(CREATE).then(|| answer.clone()));
        let runner = cluster.runner(PodOptions::default());
        let text = describe(runner.run(script("a")).await);
        check_outcome(&text, "unavailable The cluster cannot be reached (may have run)");
        cluster.wait_for_requests(DELETE, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pod_is_polled_without_a_watch() {
    let is_late = |before| if before < 3 { pod_response(&running()) } else { pod_response(&ended(4)) };
    let cluster = cluster(move |requests, before| match requests {
        _ if requests.starts_with(WATCH) => Some(refused(403, "pods is forbidden")),
        LOOK => Some(is_late(before)),
        _ => None,
    });
    let started_at = Instant::now();
    assert_eq!(run(&cluster, script("a")).await, r#"4 "1\n" """#);
    assert!((3..6).contains(&started_at.elapsed().as_secs()), "{:?}", started_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn broken_watch_is_resumed() {
    for broken in [
        watch_events(&[]),
        Some((200, b"{\"type\": \"MODIF".to_vec())),
        Some((200, b"no event\n".to_vec())),
        refused(410, "too old"),
        None,
    ] {
        let cluster = cluster(move |requests, before| {
            (requests.starts_with(WATCH) && before == 0).then(|| broken.clone())
        });
        assert_eq!(run(&cluster, script("a")).await, r#"0 "1\n" """#);
        assert!(cluster.requests().iter().any(|requests| requests == LOOK), "{:?}", cluster.requests());
    }
}

#[tokio::test(start_paused = true)]
async fn watch_that_ends_at_once_is_rate_limited() {
    let cluster = cluster(|requests, _| requests.starts_with(WATCH).then(|| watch_events(&[running()])));
    run(&cluster, script("a")).await;
    let watches = cluster.requests().iter().filter(|requests| requests.starts_with(WATCH)).count();
    assert!((10..40).contains(&watches), "{watches} in 35 s");
}

#[tokio::test(start_paused = true)]
async fn endless_script_is_timed_out() {
    let cluster = cluster(|requests, _| requests.starts_with(WATCH).then(|| watch_events(&[running()])));
    let started_at = Instant::now();
    assert_eq!(run(&cluster, script("a")).await, r#"-1 "1\n" "It exceeded its time limit of 30 s""#);
    assert!((34..=40).contains(&started_at.elapsed().as_secs()), "{:?}", started_at.elapsed());
    assert_eq!(cluster.requests().last().unwrap(), "DELETE /NAME?");
}

#[tokio::test(start_paused = true)]
async fn pod_at_its_deadline_is_a_time_out() {
    let mut overdue = running();
    overdue["reason"] = "DeadlineExceeded".into();
    let cluster =
        cluster(move |requests, _| requests.starts_with(WATCH).then(|| watch_events(&[overdue.clone()])));
    assert_eq!(run(&cluster, script("a")).await, r#"-1 "1\n" "It exceeded its time limit of 30 s""#);
}

#[tokio::test(start_paused = true)]
async fn script_not_started_in_time_has_not_run() {
    let creating = status("Pending", &json!({"waiting": {"reason": "ContainerCreating"}}));
    let cluster = cluster(move |requests, _| {
        (requests.starts_with(WATCH) || requests == LOOK).then(|| match requests {
            LOOK => pod_response(&creating),
            _ => watch_events(&[]),
        })
    });
    let expected = "unavailable The script's pod did not start: ContainerCreating (has not run)";
    assert_eq!(run(&cluster, script("a")).await, expected);
    assert_eq!(cluster.requests().last().unwrap(), "DELETE /NAME?");
}

#[tokio::test(start_paused = true)]
async fn started_script_is_reported_as_run() {
    let forgotten =
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
    for (seen, expected) in [
        (vec![running(), forgotten.clone()], "unavailable The script's pod was lost: Evicted (may have run)"),
        (vec![forgotten], "unavailable The script's pod did not start: Evicted (has not run)"),
    ] {
        let cluster = cluster(move |requests, _| requests.starts_with(WATCH).then(|| watch_events(&seen)));
        assert_eq!(run(&cluster, script("a")).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_cluster_leaves_the_outcome_unknown() {
    let cluster = cluster(|requests, _| {
        (requests.starts_with(WATCH) || requests == LOOK).then(|| refused(503, "away"))
    });
    let expected = "unavailable The cluster cannot be reached (may have run)";
    assert_eq!(run(&cluster, script("a")).await, expected);
}

#[tokio::test(start_paused = true)]
async fn missing_pod_is_lost() {
    let gone = |requests: &str, _| match requests {
        _ if requests.starts_with(WATCH) => Some(watch_events(&[])),
        LOOK => Some(refused(404, "not found")),
        _ => None,
    };
    let expected = "unavailable The script's pod was lost: Deleted (may have run)";
    assert_eq!(run(&cluster(gone), script("a")).await, expected);
}

#[tokio::test(start_paused = true)]
async fn denied_read_fails_at_once() {
    let cluster = cluster(|requests, _| match requests {
        _ if requests.starts_with(WATCH) || requests == LOOK => Some(refused(403, "forbidden")),
        _ => None,
    });
    let expected = "unavailable The script's pod was lost: Unseen (may have run)";
    assert_eq!(run(&cluster, script("a")).await, expected);
}

#[tokio::test(start_paused = true)]
async fn output_is_limited_and_decoded() {
    for (log, expected) in [
        (b"a\xffb".to_vec(), "a\u{fffd}b"),
        (vec![b'x'; 1000], "xxxxxxxx"),
        ("12345678ä".into(), "12345678"),
        ("1234567ä".into(), "1234567"),
        (Vec::new(), ""),
    ] {
        let cluster = cluster(move |requests, _| requests.starts_with(LOG).then(|| Some((200, log.clone()))));
        let options = PodOptions { output_bytes: 8, ..PodOptions::default() };
        let outcome = cluster.runner(options).run(script("a")).await.unwrap();
        assert_eq!(outcome.output, expected);
        let requests = cluster.requests();
        assert!(requests.iter().any(|requests| requests.contains("limitBytes=8")), "{requests:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn missing_output_is_retried() {
    let cluster =
        cluster(|requests, before| (requests.starts_with(LOG) && before < 2).then(|| refused(500, "no")));
    assert_eq!(run(&cluster, script("a")).await, r#"0 "1\n" """#);
}

#[tokio::test(start_paused = true)]
async fn end_without_output_is_an_error() {
    for answer in [refused(500, "no"), refused(403, "forbidden"), None] {
        let cluster = cluster(move |requests, _| requests.starts_with(LOG).then(|| answer.clone()));
        let expected = "unavailable The script's pod was lost: NoOutput (may have run)";
        assert_eq!(run(&cluster, script("a")).await, expected);
    }
}

fn no_packages() -> Value {
    let container = |name: &str, state: Value| json!({"name": name, "state": state, "ready": false, "restartCount": 0, "image": "", "imageID": ""});
    json!({
        "phase": "Failed",
        "initContainerStatuses": [container("packages", json!({"terminated": {"exitCode": 1}}))],
        "containerStatuses": [container("script", json!({"waiting": {"reason": "PodInitializing"}}))],
    })
}

#[tokio::test(start_paused = true)]
async fn end_of_pip_log_is_the_reason() {
    let cluster = cluster(|requests, _| match requests {
        _ if requests.starts_with(WATCH) => Some(watch_events(&[no_packages()])),
        _ if requests.starts_with(LOG) => Some(Some((200, b"No matching distribution".to_vec()))),
        _ => None,
    });
    let script = PythonScript { packages: vec!["nothing".to_owned()], ..script("a") };
    let expected = "execution_failed The packages could not be installed (exit 1):\nNo matching distribution (has not run)";
    assert_eq!(run(&cluster, script).await, expected);
    let log = cluster.requests().into_iter().find(|requests| requests.starts_with(LOG)).unwrap();
    assert_eq!(log, "GET /NAME/log?&container=packages&tailLines=20");
}

#[tokio::test(start_paused = true)]
async fn installation_does_not_count_as_script_time_in_pods() {
    let creating = status("Pending", &json!({"waiting": {"reason": "PodInitializing"}}));
    let cluster = cluster(move |requests, before| match requests {
        _ if requests.starts_with(WATCH) => Some(watch_events(&[])),
        LOOK => Some(if before < 100 { pod_response(&creating) } else { pod_response(&running()) }),
        _ => None,
    });
    let started_at = Instant::now();
    let script = PythonScript { packages: vec!["numpy".to_owned()], ..script("a") };
    assert_eq!(run(&cluster, script).await, r#"-1 "1\n" "It exceeded its time limit of 30 s""#);
    assert!((130..135).contains(&started_at.elapsed().as_secs()), "{:?}", started_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn pod_of_a_dropped_call_is_deleted() {
    let cluster = cluster(|requests, _| requests.starts_with(WATCH).then_some(None));
    let runner = cluster.runner(PodOptions::default());
    let wait = tokio::time::timeout(Duration::from_secs(2), runner.run(script("a")));
    assert!(wait.await.is_err());
    cluster.wait_for_requests(DELETE, 1).await;
    assert!(runner.wait_until_drained(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn failed_deletion_is_retried_and_keeps_its_permit() {
    let cluster = cluster(|requests, before| {
        (requests.starts_with(DELETE) && before < 3).then(|| refused(500, "broken"))
    });
    let runner = cluster.runner(PodOptions { concurrent: 1, ..PodOptions::default() });
    assert_eq!(describe(runner.run(script("a")).await), r#"0 "1\n" """#);
    let expected = "overloaded Too many scripts are running: 1 (has not run)";
    assert_eq!(describe(runner.run(script("b")).await), expected);
    assert!(!runner.wait_until_drained(Duration::from_millis(1)).await);
    cluster.wait_for_requests(DELETE, 4).await;
    assert!(runner.wait_until_drained(Duration::from_secs(1)).await);
    assert_eq!(describe(runner.run(script("b")).await), r#"0 "1\n" """#);
}

#[tokio::test(start_paused = true)]
async fn repeatedly_failing_deletion_is_given_up() {
    let cluster = cluster(|requests, _| requests.starts_with(DELETE).then(|| refused(403, "forbidden")));
    let runner = cluster.runner(PodOptions::default());
    runner.run(script("a")).await.unwrap();
    assert!(runner.wait_until_drained(Duration::from_secs(120)).await);
    assert_eq!(cluster.requests().iter().filter(|requests| requests.starts_with(DELETE)).count(), 7);
}

#[tokio::test(start_paused = true)]
async fn unfit_script_sends_no_request() {
    let cluster = cluster(|_, _| None);
    let script = PythonScript { source: "\0".to_owned(), ..script("a") };
    let expected = "invalid_arguments The script has a zero character (has not run)";
    assert_eq!(run(&cluster, script).await, expected);
    assert!(cluster.requests().is_empty());
}
