//! Two clients on the official Python SDK at a time, which answer each with their own name, and servers that ask them.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{Gateway, over_http, stdio};
use crate::support::peers;
use crate::support::process::run;
use crate::support::scripted::script;

const NAMES: [&str; 2] = ["Alice", "Bob"];

/// What a client saw.
struct Seen(Value);

impl Seen {
    /// How often it was asked something of which this is a part.
    fn asked(&self, part: &str) -> usize {
        let asked = self.0["asked"].as_array().unwrap().iter();
        asked.filter(|question| question.as_str().unwrap().contains(part)).count()
    }

    fn rounds(&self) -> impl Iterator<Item = Vec<&str>> {
        let rounds = self.0["texts"].as_array().unwrap().iter();
        rounds.map(|round| round.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect())
    }
}

/// What both clients see that make these calls at the same time, in so many rounds.
#[track_caller]
fn both(gateway: &Gateway, mode: &str, rounds: usize, calls: impl Fn(&str) -> Value) -> [Seen; 2] {
    let home = TempDir::new().unwrap();
    let clients = NAMES.map(|name| json!([name, calls(name)]));
    let mut python = peers::command(peers::peer("python/bin/python"), home.path());
    python.arg(script("asked.py")).args([&gateway.url(), mode, &rounds.to_string()]);
    let ended = run(python.arg(json!(clients).to_string()));
    assert_eq!(ended.code, 0, "{ended}");
    serde_json::from_str::<[Value; 2]>(&ended.stdout).unwrap().map(Seen)
}

/// npm's server lists the tools that ask only to clients that can be asked.
#[track_caller]
fn check_everything(mut handler: Value, mode: &str, rounds: usize) -> [Seen; 2] {
    handler["mcpConfig"]["lane"] = json!("client");
    let gateway = Gateway::of(&[handler]);
    let seen = both(&gateway, mode, rounds, |name| {
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
        // A call that ends while another's question is put to it leaves that to the other: it is asked twice.
        assert!(seen.asked("Please provide inputs") >= rounds);
        assert!(seen.asked(&format!("I am {own}.")) >= rounds);
        assert_eq!(seen.asked(other), 0);
    }
    seen
}

fn on_stdio() -> Value {
    stdio("everything", "mcp-server-everything", &[])
}

#[test]
fn everything_asks_each_client_in_its_session() {
    check_everything(on_stdio(), "legacy", 5);
}

#[test]
fn everything_asks_each_client_without_sessions() {
    check_everything(on_stdio(), "2026-07-28", 2);
}

/// There, a question is on the stream of its call.
#[test]
fn everything_asks_each_client_over_http() {
    let home = TempDir::new().unwrap();
    let server = peers::everything(home.path());
    for (mode, rounds) in [("legacy", 5), ("2026-07-28", 2)] {
        for seen in check_everything(over_http("everything", &server.url), mode, rounds) {
            assert_eq!((seen.asked("Please provide inputs"), seen.asked("I am")), (rounds, rounds));
        }
    }
}

/// By default, and many times.
#[track_caller]
fn check_asking(mode: &str, rounds: usize) {
    let folder = TempDir::new().unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (python, server) = (path(&peers::peer("python/bin/python")), path(&script("asking.py")));
    let gateway = Gateway::of(&[stdio("asking", &python, &["-IS", &server, &path(folder.path())])]);
    let seen = both(&gateway, mode, rounds, |name| {
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
        let asked: usize = (0..4).map(|n| seen.asked(&format!("{} {n}", NAMES[at]))).sum();
        assert!(asked >= 4 * rounds, "{asked}");
        assert_eq!(seen.asked(NAMES[1 - at]), 0);
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
