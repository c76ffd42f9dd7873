//! Two concurrent clients on the official Python SDK, which answer with their own names, and servers that send requests
//! to them.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{http_handler, stdio_handler};
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

const NAMES: [&str; 2] = ["Alice", "Bob"];

/// The report of a client.
struct ClientReport(Value);

impl ClientReport {
    /// Returns the number of questions that contain a text.
    fn question_count(&self, part: &str) -> usize {
        let questions = self.0["asked"].as_array().unwrap().iter();
        questions.filter(|question| question.as_str().unwrap().contains(part)).count()
    }

    fn rounds(&self) -> impl Iterator<Item = Vec<&str>> {
        let rounds = self.0["texts"].as_array().unwrap().iter();
        rounds.map(|round| round.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect())
    }
}

/// Runs two clients that make these calls concurrently in several rounds, and returns their reports.
#[track_caller]
fn run_two_clients(
    gateway: &TestGateway,
    mode: &str,
    rounds: usize,
    calls: impl Fn(&str) -> Value,
) -> [ClientReport; 2] {
    let home = TempDir::new().unwrap();
    let clients = NAMES.map(|name| json!([name, calls(name)]));
    let mut python = peers::command(peers::peer("python/bin/python"), home.path());
    python.arg(script("asked.py")).args([&gateway.url(), mode, &rounds.to_string()]);
    let ended = run(python.arg(json!(clients).to_string()));
    assert_eq!(ended.code, 0, "{ended}");
    serde_json::from_str::<[Value; 2]>(&ended.stdout).unwrap().map(ClientReport)
}

/// npm's server lists the tools that ask only for clients that support questions.
#[track_caller]
fn check_everything(mut handler: Value, mode: &str, rounds: usize) -> [ClientReport; 2] {
    handler["mcpConfig"]["lane"] = json!("client");
    let gateway = TestGateway::with_handlers(&[handler]);
    let seen = run_two_clients(&gateway, mode, rounds, |name| {
        let sample = json!({"prompt": format!("I am {name}."), "maxTokens": 10});
        json!([
            ["trigger-elicitation-request", {}],
            ["trigger-sampling-request", sample],
            ["get-roots-list", {}]
        ])
    });
    for (at, seen) in seen.iter().enumerate() {
        let (own, other) = (NAMES[at], NAMES[1 - at]);
        assert_eq!(seen.rounds().count(), rounds);
        for texts in seen.rounds() {
            for (text, answer) in
                texts.iter().zip(["- Name: NAME ", "\"text\": \"NAME\"", "URI: file:///NAME\n"])
            {
                assert!(text.contains(&answer.replace("NAME", own)), "{text}");
                assert!(!text.contains(other), "{text}");
            }
        }
        // If a call ends while the question of another is delivered to it, the server repeats the question.
        assert!(seen.question_count("Please provide inputs") >= rounds);
        assert!(seen.question_count(&format!("I am {own}.")) >= rounds);
        assert_eq!(seen.question_count(other), 0);
    }
    seen
}

fn on_stdio() -> Value {
    stdio_handler("everything", "mcp-server-everything", &[])
}

#[test]
fn everything_server_asks_clients_with_sessions() {
    check_everything(on_stdio(), "legacy", 5);
}

#[test]
fn everything_server_asks_clients_without_sessions() {
    check_everything(on_stdio(), "2026-07-28", 2);
}

/// Over HTTP, a question is on the stream of its call.
#[test]
fn everything_server_asks_clients_over_http() {
    let home = TempDir::new().unwrap();
    let server = peers::everything(home.path());
    for (mode, rounds) in [("legacy", 5), ("2026-07-28", 2)] {
        for seen in check_everything(http_handler("everything", &server.url), mode, rounds) {
            assert_eq!(
                (seen.question_count("Please provide inputs"), seen.question_count("I am")),
                (rounds, rounds)
            );
        }
    }
}

/// Repeats questions many times, with the default sharing mode.
#[track_caller]
fn check_asking(mode: &str, rounds: usize) {
    let folder = TempDir::new().unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (python, server) = (path(&peers::peer("python/bin/python")), path(&script("asking.py")));
    let gateway = TestGateway::with_handlers(&[stdio_handler(
        "asking",
        &python,
        &["-IS", &server, &path(folder.path())],
    )]);
    let seen = run_two_clients(&gateway, mode, rounds, |name| {
        let elicit = |n: usize| {
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            json!({"message": format!("{name} {n}"), "requestedSchema": schema})
        };
        let call = |n| json!(["ask", {"method": "elicitation/create", "params": elicit(n)}]);
        (0..4).map(call).collect()
    });
    for (at, seen) in seen.iter().enumerate() {
        for texts in seen.rounds() {
            let answer = json!({"result": {"action": "accept", "content": {"name": NAMES[at]}}});
            for text in texts {
                assert_eq!(serde_json::from_str::<Value>(text).unwrap(), answer);
            }
        }
        let total: usize = (0..4).map(|n| seen.question_count(&format!("{} {n}", NAMES[at]))).sum();
        assert!(total >= 4 * rounds, "{total}");
        assert_eq!(seen.question_count(NAMES[1 - at]), 0);
    }
}

#[test]
fn many_questions_in_sessions() {
    check_asking("legacy", 10);
}

#[test]
fn many_questions_without_sessions() {
    check_asking("2026-07-28", 2);
}
