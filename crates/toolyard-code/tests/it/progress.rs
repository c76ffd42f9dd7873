//! Progress of scripts: notifications of the call that runs the script.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolyard_code::tools::RUN;
use toolyard_core::{Client, ClientNotification, Json};
use toolyard_manifest::CodeSettings;

use crate::harness::Harness;

/// A client that may want progress, and keeps it.
#[derive(Debug)]
struct ProgressClient {
    listens: bool,
    reports: Mutex<Vec<Value>>,
}

impl Client for ProgressClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn notify(&self, notice: ClientNotification) {
        if let ClientNotification::Progress(body) = notice {
            self.reports.lock().unwrap().push(body.params.to_json().to_value());
        }
    }
}

/// Runs a script, and returns what a model reads, and the progress by then.
async fn run(harness: &Harness, listens: bool, language: &str, code: &str) -> (String, Vec<Value>) {
    let client = Arc::new(ProgressClient { listens, reports: Mutex::default() });
    let arguments = json!({"language": language, "code": code});
    let text = harness.call_with(&["*"], None, client.clone(), RUN, arguments).await;
    let reports = client.reports.lock().unwrap().clone();
    (text, reports)
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_reaches_the_client_before_the_result() {
    let harness = Harness::new(CodeSettings::default());
    let expected = [
        json!({"progress": 1, "total": 3, "message": "pages"}),
        json!({"progress": 2.5, "message": "half"}),
        json!({"progress": 3}),
    ];
    let scripts = [
        (
            "javascript",
            "progress(1, 3, 'pages'); await tools.hub.echo(); progress(2.5, undefined, 'half'); progress(3); return 1",
        ),
        ("lua", "progress(1, 3, 'pages') tools.hub.echo() progress(2.5, nil, 'half') progress(3) return 1"),
    ];
    for (language, code) in scripts {
        let (text, reports) = run(&harness, true, language, code).await;
        assert_eq!((&*text, &*reports), ("1", &expected[..]), "{language}");
        let (text, reports) = run(&harness, false, language, code).await;
        assert_eq!((&*text, &*reports), ("1", &[][..]), "{language}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_a_script_that_fails_has_arrived() {
    let harness = Harness::new(CodeSettings::default());
    let (text, reports) = run(&harness, true, "javascript", "progress(1); await tools.hub.fail()").await;
    assert!(text.starts_with("error: The script failed in line 1: ToolError: fail"), "{text}");
    assert_eq!(reports, [json!({"progress": 1})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_report_is_cut() {
    let harness = Harness::new(CodeSettings::default());
    let (_, reports) = run(&harness, true, "javascript", "progress(1, 2, 'é'.repeat(1000))").await;
    assert_eq!(reports[0]["message"].as_str().map(|text| text.chars().count()), Some(500));
}
