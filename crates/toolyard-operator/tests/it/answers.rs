//! What becomes of a script with every answer that a cluster may give.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_core::ToolError;
use toolyard_core::script::{Runner, Script, ScriptOutcome};
use toolyard_operator::PodOptions;

use crate::mock::{Answer, Cluster, ended, found, refused, running, status, watched};
use crate::script;

const CREATE: &str = "POST ?";
const WATCH: &str = "GET ?&watch";
const LOOK: &str = "GET /NAME";
const LOG: &str = "GET /NAME/log";
const DELETE: &str = "DELETE /NAME";

/// A cluster where a script ends well, apart from what `other` says.
fn cluster(other: impl Fn(&str, usize) -> Option<Answer> + Send + 'static) -> Cluster {
    Cluster::new(move |asked, before| {
        if let Some(answer) = other(asked, before) {
            return answer;
        }
        match asked {
            _ if asked.starts_with(CREATE) => found(&json!({})),
            _ if asked.starts_with(WATCH) => watched(&[running(), ended(0)]),
            _ if asked.starts_with(LOG) => Some((200, b"1\n".to_vec())),
            _ if asked.starts_with(DELETE) => found(&json!({})),
            _ => found(&running()),
        }
    })
}

fn shown(outcome: Result<ScriptOutcome, ToolError>) -> String {
    match outcome {
        Ok(ScriptOutcome { output, stderr, exit_code, .. }) => format!("{exit_code} {output:?} {stderr:?}"),
        Err(error) => {
            let has_run = if error.may_have_run() { "may have run" } else { "has not run" };
            format!("{} {error} ({has_run})", error.code().row().wire)
        }
    }
}

async fn run(cluster: &Cluster, script: Script) -> String {
    shown(cluster.runner(PodOptions::default()).run(script).await)
}

#[track_caller]
fn check_outcome(shown: &str, expected: &str) {
    assert_eq!(shown, expected);
}

#[tokio::test(start_paused = true)]
async fn a_script_is_four_requests() {
    let cluster = cluster(|_, _| None);
    assert_eq!(run(&cluster, script("a")).await, r#"0 "1\n" """#);
    insta::assert_snapshot!(cluster.asked().join("\n"), @r#"
    POST ?
    GET ?&watch=true&timeoutSeconds=30&fieldSelector=metadata.name%3DNAME&allowWatchBookmarks=true&resourceVersion=7
    GET /NAME/log?&container=script&limitBytes=1048576
    DELETE /NAME?
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_made_is_no_outcome() {
    for (code, message, expected) in [
        (403, "pods is forbidden", "execution_failed The cluster refuses the script's pod (has not run)"),
        (
            403,
            "exceeded quota: scripts",
            "overloaded The cluster has no room for another script (has not run)",
        ),
        (401, "Unauthorized", "execution_failed The cluster refuses the script's pod (has not run)"),
        (404, "no namespace", "execution_failed The cluster refuses the script's pod (has not run)"),
        (422, "invalid", "execution_failed The cluster refuses the script's pod (has not run)"),
        (413, "large", "invalid_arguments The script is longer than the cluster takes (has not run)"),
        (429, "busy", "overloaded The cluster has no room for another script (has not run)"),
    ] {
        let cluster = cluster(move |asked, _| asked.starts_with(CREATE).then(|| refused(code, message)));
        check_outcome(&run(&cluster, script("a")).await, expected);
        assert_eq!(cluster.asked().len(), 1, "{:?}", cluster.asked());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_which_nobody_knows_whether_it_was_made_is_deleted() {
    for answer in [refused(500, "broken"), refused(503, "away"), None] {
        let cluster = cluster(move |asked, _| asked.starts_with(CREATE).then(|| answer.clone()));
        let runner = cluster.runner(PodOptions::default());
        let shown = shown(runner.run(script("a")).await);
        check_outcome(&shown, "unavailable The cluster cannot be reached (may have run)");
        cluster.was_asked(DELETE, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_it_is_looked() {
    let is_late = |before| if before < 3 { found(&running()) } else { found(&ended(4)) };
    let cluster = cluster(move |asked, before| match asked {
        _ if asked.starts_with(WATCH) => Some(refused(403, "pods is forbidden")),
        LOOK => Some(is_late(before)),
        _ => None,
    });
    let begun = Instant::now();
    assert_eq!(run(&cluster, script("a")).await, r#"4 "1\n" """#);
    assert!((3..6).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_is_gone_on_with() {
    for broken in [
        watched(&[]),
        Some((200, b"{\"type\": \"MODIF".to_vec())),
        Some((200, b"no event\n".to_vec())),
        refused(410, "too old"),
        None,
    ] {
        let cluster =
            cluster(move |asked, before| (asked.starts_with(WATCH) && before == 0).then(|| broken.clone()));
        assert_eq!(run(&cluster, script("a")).await, r#"0 "1\n" """#);
        assert!(cluster.asked().iter().any(|asked| asked == LOOK), "{:?}", cluster.asked());
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_not_begun_without_end() {
    let cluster = cluster(|asked, _| asked.starts_with(WATCH).then(|| watched(&[running()])));
    run(&cluster, script("a")).await;
    let watches = cluster.asked().iter().filter(|asked| asked.starts_with(WATCH)).count();
    assert!((10..40).contains(&watches), "{watches} in 35 s");
}

#[tokio::test(start_paused = true)]
async fn a_script_that_does_not_end_is_ended() {
    let cluster = cluster(|asked, _| asked.starts_with(WATCH).then(|| watched(&[running()])));
    let begun = Instant::now();
    assert_eq!(run(&cluster, script("a")).await, r#"-1 "1\n" "It took longer than 30 s""#);
    assert!((34..=40).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!(cluster.asked().last().unwrap(), "DELETE /NAME?");
}

#[tokio::test(start_paused = true)]
async fn a_pod_at_its_deadline_is_a_script_that_took_too_long() {
    let mut overdue = running();
    overdue["reason"] = "DeadlineExceeded".into();
    let cluster = cluster(move |asked, _| asked.starts_with(WATCH).then(|| watched(&[overdue.clone()])));
    assert_eq!(run(&cluster, script("a")).await, r#"-1 "1\n" "It took longer than 30 s""#);
}

#[tokio::test(start_paused = true)]
async fn a_script_that_was_not_begun_in_time_has_not_run() {
    let creating = status("Pending", &json!({"waiting": {"reason": "ContainerCreating"}}));
    let cluster = cluster(move |asked, _| {
        (asked.starts_with(WATCH) || asked == LOOK).then(|| match asked {
            LOOK => found(&creating),
            _ => watched(&[]),
        })
    });
    let expected = "unavailable The script's pod did not start: ContainerCreating (has not run)";
    assert_eq!(run(&cluster, script("a")).await, expected);
    assert_eq!(cluster.asked().last().unwrap(), "DELETE /NAME?");
}

#[tokio::test(start_paused = true)]
async fn what_has_run_is_not_said_not_to_have() {
    let forgotten =
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
    for (seen, expected) in [
        (vec![running(), forgotten.clone()], "unavailable The script's pod was lost: Evicted (may have run)"),
        (vec![forgotten], "unavailable The script's pod did not start: Evicted (has not run)"),
    ] {
        let cluster = cluster(move |asked, _| asked.starts_with(WATCH).then(|| watched(&seen)));
        assert_eq!(run(&cluster, script("a")).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_away_leaves_the_end_open() {
    let cluster =
        cluster(|asked, _| (asked.starts_with(WATCH) || asked == LOOK).then(|| refused(503, "away")));
    let expected = "unavailable The cluster cannot be reached (may have run)";
    assert_eq!(run(&cluster, script("a")).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_is_lost() {
    let gone = |asked: &str, _| match asked {
        _ if asked.starts_with(WATCH) => Some(watched(&[])),
        LOOK => Some(refused(404, "not found")),
        _ => None,
    };
    let expected = "unavailable The script's pod was lost: Deleted (may have run)";
    assert_eq!(run(&cluster(gone), script("a")).await, expected);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_look_is_told_at_once() {
    let cluster = cluster(|asked, _| match asked {
        _ if asked.starts_with(WATCH) || asked == LOOK => Some(refused(403, "forbidden")),
        _ => None,
    });
    let expected = "unavailable The script's pod was lost: Unseen (may have run)";
    assert_eq!(run(&cluster, script("a")).await, expected);
}

#[tokio::test(start_paused = true)]
async fn output_is_read_within_its_bound_and_as_text() {
    for (log, expected) in [
        (b"a\xffb".to_vec(), "a\u{fffd}b"),
        (vec![b'x'; 1000], "xxxxxxxx"),
        ("12345678ä".into(), "12345678"),
        ("1234567ä".into(), "1234567"),
        (Vec::new(), ""),
    ] {
        let cluster = cluster(move |asked, _| asked.starts_with(LOG).then(|| Some((200, log.clone()))));
        let options = PodOptions { output_bytes: 8, ..PodOptions::default() };
        let outcome = cluster.runner(options).run(script("a")).await.unwrap();
        assert_eq!(outcome.output, expected);
        let asked = cluster.asked();
        assert!(asked.iter().any(|asked| asked.contains("limitBytes=8")), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn output_that_is_not_there_yet_is_asked_for_again() {
    let cluster = cluster(|asked, before| (asked.starts_with(LOG) && before < 2).then(|| refused(500, "no")));
    assert_eq!(run(&cluster, script("a")).await, r#"0 "1\n" """#);
}

#[tokio::test(start_paused = true)]
async fn an_end_without_its_output_is_no_outcome() {
    for answer in [refused(500, "no"), refused(403, "forbidden"), None] {
        let cluster = cluster(move |asked, _| asked.starts_with(LOG).then(|| answer.clone()));
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
async fn what_pip_says_at_the_end_is_the_reason() {
    let cluster = cluster(|asked, _| match asked {
        _ if asked.starts_with(WATCH) => Some(watched(&[no_packages()])),
        _ if asked.starts_with(LOG) => Some(Some((200, b"No matching distribution".to_vec()))),
        _ => None,
    });
    let script = Script { packages: vec!["nothing".to_owned()], ..script("a") };
    let expected = "execution_failed The packages could not be installed (exit 1):\nNo matching distribution (has not run)";
    assert_eq!(run(&cluster, script).await, expected);
    let log = cluster.asked().into_iter().find(|asked| asked.starts_with(LOG)).unwrap();
    assert_eq!(log, "GET /NAME/log?&container=packages&tailLines=20");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_packages_is_not_the_script_s() {
    let creating = status("Pending", &json!({"waiting": {"reason": "PodInitializing"}}));
    let cluster = cluster(move |asked, before| match asked {
        _ if asked.starts_with(WATCH) => Some(watched(&[])),
        LOOK => Some(if before < 100 { found(&creating) } else { found(&running()) }),
        _ => None,
    });
    let begun = Instant::now();
    let script = Script { packages: vec!["numpy".to_owned()], ..script("a") };
    assert_eq!(run(&cluster, script).await, r#"-1 "1\n" "It took longer than 30 s""#);
    assert!((130..135).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_deleted_when_nobody_waits_for_it_any_more() {
    let cluster = cluster(|asked, _| asked.starts_with(WATCH).then_some(None));
    let runner = cluster.runner(PodOptions::default());
    let wait = tokio::time::timeout(Duration::from_secs(2), runner.run(script("a")));
    assert!(wait.await.is_err());
    cluster.was_asked(DELETE, 1).await;
    assert!(runner.drained(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_deleted_is_tried_again_and_keeps_its_place() {
    let cluster =
        cluster(|asked, before| (asked.starts_with(DELETE) && before < 3).then(|| refused(500, "broken")));
    let runner = cluster.runner(PodOptions { concurrent: 1, ..PodOptions::default() });
    assert_eq!(shown(runner.run(script("a")).await), r#"0 "1\n" """#);
    let expected = "overloaded Too many scripts run already: 1 (has not run)";
    assert_eq!(shown(runner.run(script("b")).await), expected);
    assert!(!runner.drained(Duration::from_millis(1)).await);
    cluster.was_asked(DELETE, 4).await;
    assert!(runner.drained(Duration::from_secs(1)).await);
    assert_eq!(shown(runner.run(script("b")).await), r#"0 "1\n" """#);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_can_never_be_deleted_is_given_up() {
    let cluster = cluster(|asked, _| asked.starts_with(DELETE).then(|| refused(403, "forbidden")));
    let runner = cluster.runner(PodOptions::default());
    runner.run(script("a")).await.unwrap();
    assert!(runner.drained(Duration::from_secs(120)).await);
    assert_eq!(cluster.asked().iter().filter(|asked| asked.starts_with(DELETE)).count(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_script_that_no_pod_takes_asks_nobody() {
    let cluster = cluster(|_, _| None);
    let script = Script { source: "\0".to_owned(), ..script("a") };
    let expected = "invalid_arguments The script has a zero character (has not run)";
    assert_eq!(run(&cluster, script).await, expected);
    assert!(cluster.asked().is_empty());
}
