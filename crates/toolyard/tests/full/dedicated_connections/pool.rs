//! The pool of dedicated connections: one backend, scripted clients and `scripts/asking.py`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, poll_immediate};
use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::time::Instant;
use toolyard_core::{Backend, Caller, ErrorCode, InputRequestError, Json, Object};
use toolyard_mcp::client::{LivenessProbe, SharingMode};
use toolyard_testing::wait::{LIMIT, until_async};

use super::asking_backend::{ALL_CAPABILITIES, AnsweringClient, AskingBackend};

#[tokio::test]
async fn capable_clients_get_dedicated_connections() {
    let able = Arc::new(AnsweringClient::new("Alice", ALL_CAPABILITIES));
    let unable = Arc::new(AnsweringClient::new("Bob", "{}"));
    let [everybody, session, principal] =
        [Caller::default(), session("s"), Caller { principal: Some("p".into()), ..Caller::default() }];
    let mut lines = Vec::new();
    for mode in [SharingMode::Automatic, SharingMode::Shared, SharingMode::Client] {
        let setup = AskingBackend::new(|options| options.dedicated.sharing = mode).await;
        let mut pids = Vec::new();
        for (who, person, caller) in [
            ("nobody in particular who can be asked", &able, &everybody),
            ("a session that can be asked", &able, &session),
            ("a principal that can be asked", &able, &principal),
            ("another that cannot", &unable, &principal),
            ("nobody in particular who cannot", &unable, &everybody),
        ] {
            let pid = setup.text(person, caller, "pid", "{}").await;
            let number = pids.iter().position(|known| *known == pid).unwrap_or(pids.len());
            pids.push(pid);
            let declared = setup.text(person, caller, "declared", "{}").await;
            lines.push(format!("{mode:?}, {who}: process {number}, {declared}"));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    Automatic, nobody in particular who can be asked: process 0, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    Automatic, a session that can be asked: process 1, {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": true}}
    Automatic, a principal that can be asked: process 2, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    Automatic, another that cannot: process 3, {}
    Automatic, nobody in particular who cannot: process 3, {}
    Shared, nobody in particular who can be asked: process 0, {}
    Shared, a session that can be asked: process 0, {}
    Shared, a principal that can be asked: process 0, {}
    Shared, another that cannot: process 0, {}
    Shared, nobody in particular who cannot: process 0, {}
    Client, nobody in particular who can be asked: process 0, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    Client, a session that can be asked: process 1, {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": true}}
    Client, a principal that can be asked: process 2, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    Client, another that cannot: process 3, {}
    Client, nobody in particular who cannot: process 4, {}
    "#);
}

#[tokio::test]
async fn request_on_shared_connection_ends_with_its_call() {
    let setup = AskingBackend::new(|_| {}).await;
    let (alice, bob, nobody) = (
        AnsweringClient::with_all_capabilities("Alice"),
        AnsweringClient::with_all_capabilities("Bob"),
        Caller::default(),
    );
    let first = setup.text(&alice, &nobody, "pid", "{}").await;
    assert_eq!(setup.text(&bob, &nobody, "pid", "{}").await, first);
    assert_eq!(setup.text(&bob, &nobody, "ask", ELICIT).await, r#"{"result": {"name": "Bob"}}"#);
    let second = setup.text(&alice, &nobody, "pid", "{}").await;
    assert_ne!(second, first);
    // The connection is not reused either while it may still work on a cancelled call.
    tokio::select! {
        _ = setup.call(&alice, &nobody, "wait", "{}") => panic!("the gate is closed"),
        line = setup.received(|line| line["params"]["name"] == "wait") => {
            assert_eq!(line["pid"].to_string(), second);
        }
    }
    assert_ne!(setup.text(&bob, &nobody, "pid", "{}").await, second);
    assert_eq!((alice.question_count(), bob.question_count()), (0, 1));
}

/// Only servers that have requested the roots of a session are notified when they change.
#[tokio::test]
async fn changed_roots_are_notified() {
    let setup = AskingBackend::new(|_| {}).await;
    let (person, roots) = (AnsweringClient::with_all_capabilities("Alice"), r#"{"method":"roots/list"}"#);
    let [asked, unasked, other] = ["asked", "unasked", "other"].map(session);
    let key = Caller { principal: Some("p".into()), ..Caller::default() };
    let pid = setup.text(&person, &asked, "pid", "{}").await;
    setup.text(&person, &unasked, "pid", "{}").await;
    for caller in [&asked, &other, &key] {
        setup.text(&person, caller, "ask", roots).await;
    }
    for caller in [&unasked, &key, &Caller::default(), &asked] {
        setup.backend.roots_changed(caller);
    }
    let is_news = |line: &Value| line["method"] == "notifications/roots/list_changed";
    assert_eq!(setup.received(is_news).await["pid"].to_string(), pid);
    for caller in [&unasked, &other, &key] {
        // All earlier messages have been read.
        setup.text(&person, caller, "pid", "{}").await;
    }
    assert_eq!(setup.count(is_news), 1);
}

/// Two clients with the same key cannot be distinguished.
#[tokio::test]
async fn clients_of_one_principal_are_not_asked_for_each_other() {
    for mode in [SharingMode::Automatic, SharingMode::Client] {
        let setup = AskingBackend::new(|options| options.dedicated.sharing = mode).await;
        let (alice, bob) =
            (AnsweringClient::with_all_capabilities("Alice"), AnsweringClient::with_all_capabilities("Bob"));
        let caller = Caller { principal: Some("p".into()), ..Caller::default() };
        let asking = setup.call(&alice, &caller, "later", ELICIT);
        let other = async {
            let busy = setup.received(|line| line["params"]["name"] == "later").await["pid"].to_string();
            let mut waiting = Box::pin(setup.call(&bob, &caller, "withdraw", ELICIT));
            bob.hold_answers();
            tokio::select! {
                _ = &mut waiting => panic!("the gate is closed"),
                () = until_async("the open questions", || bob.open_questions() == 1) => setup.open_gate(),
            }
            assert_eq!(waiting.await.unwrap(), "withdrawn");
            busy
        };
        let (asked, busy) = tokio::join!(asking, other);
        assert_eq!(asked.unwrap(), r#"{"result": {"name": "Alice"}}"#);
        assert_eq!((alice.question_count(), bob.question_count()), (1, 1), "{mode:?}");
        // The state of a server belongs to the principal.
        assert_eq!(setup.text(&alice, &caller, "pid", "{}").await, busy);
    }
}

#[tokio::test]
async fn late_questions_are_refused() {
    let setup = AskingBackend::new(|_| {}).await;
    let (alice, bob, nobody) = (
        AnsweringClient::with_all_capabilities("Alice"),
        AnsweringClient::with_all_capabilities("Bob"),
        Caller::default(),
    );
    let late = ELICIT.replacen('{', r#"{"late":true,"#, 1);
    assert_eq!(setup.text(&alice, &nobody, "leave", &late).await, "left");
    let refusal = setup.received(|line| line["error"].is_object()).await;
    assert_snapshot!(refusal["error"], @r#"{"code":-32603,"message":"the client cannot be asked"}"#);
    let next = setup.text(&bob, &nobody, "pid", "{}").await;
    assert_ne!(refusal["pid"].to_string(), next);
    // No call waits for the refusal here.
    assert_eq!(setup.text(&alice, &nobody, "leave", &late).await, "left");
    assert_ne!(setup.text(&bob, &nobody, "pid", "{}").await, next);
    assert_eq!((alice.question_count(), bob.question_count()), (0, 0));
    // The client is asked while its call runs, and the call does not wait for the answer.
    alice.hold_answers();
    assert_eq!(setup.text(&alice, &session("s"), "leave", ELICIT).await, "left");
    until_async("the open questions", || alice.open_questions() == 0).await;
}

#[tokio::test]
async fn session_client_is_asked_for_any_of_its_calls() {
    let setup = AskingBackend::new(|_| {}).await;
    let (older, newer, caller) = (
        AnsweringClient::with_all_capabilities("older"),
        AnsweringClient::with_all_capabilities("newer"),
        session("s"),
    );
    newer.hold_answers();
    older.hold_answers();
    let asking = setup.call(&older, &caller, "ask", ELICIT);
    let waiting = setup.call(&newer, &caller, "wait", "{}");
    let ask = async {
        // Both calls run, and either is asked.
        until_async("the open questions", || older.open_questions() + newer.open_questions() == 1).await;
        setup.received(|line| line["params"]["name"] == "wait").await;
        let again = setup.text(&newer, &caller, "log", r#"{"data":"x"}"#).await;
        assert_eq!(again, "logged");
        setup.open_gate();
        // The waiting call has ended: if it was asked, the other is asked now.
        until_async("the open questions", || older.open_questions() == 1).await;
        older.release_answers();
    };
    let (asked, waited, ()) = tokio::join!(asking, waiting, ask);
    assert_eq!(asked.unwrap(), r#"{"result": {"name": "older"}}"#);
    assert_eq!(waited.unwrap(), "The gate is open.");
}

#[tokio::test]
async fn questions_end_with_their_call_or_when_cancelled() {
    let setup = AskingBackend::new(|_| {}).await;
    let (alice, caller) = (AnsweringClient::with_all_capabilities("Alice"), session("s"));
    alice.hold_answers();
    tokio::select! {
        _ = setup.call(&alice, &caller, "ask", ELICIT) => panic!("nobody answers"),
        () = until_async("the open questions", || alice.open_questions() == 1) => {}
    }
    assert_eq!(alice.open_questions(), 0);
    setup.received(|line| line["method"] == "notifications/cancelled").await;
    setup.received(|line| line["error"].is_object()).await;
    let withdrawing = setup.call(&alice, &caller, "withdraw", ELICIT);
    let withdrawn = async {
        until_async("the open questions", || alice.open_questions() == 1).await;
        setup.open_gate();
    };
    let (withdrew, ()) = tokio::join!(withdrawing, withdrawn);
    assert_eq!(withdrew.unwrap(), "withdrawn");
    assert_eq!(alice.open_questions(), 0);
}

/// The official filesystem server requests the roots of its client once, before any call.
#[tokio::test]
async fn question_before_any_call_reaches_the_first_caller() {
    let setup = AskingBackend::new(|_| {}).await;
    std::fs::write(setup.folder.path().join("roots"), "").unwrap();
    let (alice, bob) =
        (AnsweringClient::with_all_capabilities("Alice"), AnsweringClient::with_all_capabilities("Bob"));
    let first_answer = r#"{"result": {"name": "Alice"}}"#;
    assert_eq!(setup.text(&alice, &session("a"), "roots", "{}").await, first_answer);
    assert_eq!((alice.questions(), bob.question_count()), (vec!["Roots {}".to_owned()], 0));
    // A slow client is asked again with the next call, and not before.
    bob.hold_answers();
    assert_eq!(setup.text(&bob, &session("b"), "roots", "{}").await, "null");
    assert_eq!((bob.open_questions(), bob.question_count()), (0, 1));
    bob.release_answers();
    setup.open_gate();
    setup.text(&bob, &session("b"), "wait", "{}").await;
    assert_eq!(setup.text(&bob, &session("b"), "roots", "{}").await, r#"{"result": {"name": "Bob"}}"#);
    assert_eq!((alice.question_count(), bob.question_count()), (1, 2));
}

#[tokio::test]
async fn open_questions_are_limited() {
    let setup = AskingBackend::new(|_| {}).await;
    let alice = AnsweringClient::with_all_capabilities("Alice");
    alice.hold_answers();
    let (many, caller) = (ELICIT.replacen('{', r#"{"count":50,"#, 1), session("s"));
    let flood = setup.call(&alice, &caller, "flood", &many);
    let answering = async {
        // The refusals may be at the server before the client has the questions.
        until_async("the questions and the refusals", || {
            alice.open_questions() == 16 && setup.count(|line| line["error"].is_object()) == 50 - 16
        })
        .await;
        alice.release_answers();
    };
    let (responses, ()) = tokio::join!(flood, answering);
    assert_eq!(responses.unwrap().matches(r#""result""#).count(), 16);
}

#[tokio::test]
async fn client_responses_are_passed_unchanged() {
    let setup = AskingBackend::new(|_| {}).await;
    let caller = session("s");
    let roots = r#"{"method":"roots/list"}"#;
    let sample = r#"{"method":"sampling/createMessage","params":{"maxTokens":1.0}}"#;
    let mut lines = Vec::new();
    for question in [ELICIT, sample, roots, r#"{"method":"ping"}"#, r#"{"method":"tools/list"}"#] {
        let alice = AnsweringClient::with_all_capabilities("Alice");
        lines.push(setup.text(&alice, &caller, "ask", question).await);
        lines.extend(alice.questions());
    }
    let modest = AnsweringClient::new("Alice", r#"{"roots":{}}"#);
    lines.push(setup.text(&Arc::new(modest), &caller, "ask", ELICIT).await);
    let refused = toolyard_core::Json::parse(r#"{"code":-1,"message":"no","data":[1.0]}"#).unwrap();
    for error in [
        InputRequestError::Refused(refused),
        InputRequestError::Unsupported(
            Object::new().with("elicitation", Json::parse(r#"{"url":{}}"#).unwrap()),
        ),
        InputRequestError::BadQuestion("it is none".to_owned()),
        InputRequestError::TooLate,
    ] {
        let alice = AnsweringClient::with_all_capabilities("Alice");
        alice.set_answer(Err(error));
        lines.push(setup.text(&alice, &caller, "ask", ELICIT).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"result": {"name": "Alice"}}
    Elicit {"message":"who?","x":1.0}
    {"result": {"name": "Alice"}}
    Sample {"maxTokens":1.0}
    {"result": {"name": "Alice"}}
    Roots {}
    {"result": {}}
    {"error": {"code": -32601, "message": "Method not found: tools/list"}}
    {"error": {"code": -32601, "message": "Method not found: elicitation/create"}}
    {"error": {"code": -1, "message": "no", "data": [1.0]}}
    {"error": {"code": -32602, "message": "the client does not support elicitation.url"}}
    {"error": {"code": -32602, "message": "it is none"}}
    {"error": {"code": -32603, "message": "the client did not answer in time"}}
    "#);
}

#[tokio::test]
async fn log_reaches_the_client_of_the_only_running_call() {
    let setup = AskingBackend::new(|_| {}).await;
    let (alice, unable) =
        (AnsweringClient::with_all_capabilities("Alice"), Arc::new(AnsweringClient::new("Bob", "{}")));
    for (person, message) in [(&alice, r#"{"data":"dear Alice"}"#), (&unable, r#"{"data":"dear Bob"}"#)] {
        assert_eq!(setup.text(person, &session("s"), "log", message).await, "logged");
    }
    assert_eq!(alice.notices(), [r#"{"level":"error","data":"dear Alice"}"#]);
    assert_eq!(unable.notices(), [r#"{"level":"error","data":"dear Bob"}"#]);
}

#[tokio::test]
async fn dedicated_connections_are_limited() {
    let setup = AskingBackend::new(|options| options.dedicated.limit = 2).await;
    let alice = AnsweringClient::with_all_capabilities("Alice");
    let pid = async |name: &str| setup.text(&alice, &session(name), "pid", "{}").await;
    let (a, b) = (pid("a").await, pid("b").await);
    assert_eq!((pid("a").await, pid("b").await, pid("a").await), (a.clone(), b.clone(), a.clone()));
    // The least recently used connection is closed.
    let c = pid("c").await;
    assert_eq!((pid("a").await, pid("c").await), (a.clone(), c.clone()));
    assert_ne!(pid("b").await, b);
    // While all are in use, further calls wait: clients cannot be asked on the shared connection.
    let (in_a, in_b) = (session("b"), session("c"));
    let waiting = [setup.call(&alice, &in_a, "wait", "{}"), setup.call(&alice, &in_b, "wait", "{}")];
    let sharing = async {
        until_async("the messages at the server", || {
            setup.count(|line| line["params"]["name"] == "wait") == 2
        })
        .await;
        let at_once = Some(Instant::now());
        let refused = setup.call_until(&alice, &session("d"), "pid", "{}", at_once).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        let in_d = session("d");
        let mut next = Box::pin(setup.call(&alice, &in_d, "declared", "{}"));
        assert!(poll_immediate(&mut next).await.is_none());
        setup.open_gate();
        assert_ne!(next.await.unwrap(), "{}");
    };
    let (waited, ()) = tokio::join!(join_all(waiting), sharing);
    assert!(waited.iter().all(Result::is_ok), "{waited:?}");
    assert_eq!(alice.question_count(), 0);
}

#[tokio::test]
async fn per_client_connections_wait_for_a_free_slot() {
    let setup = AskingBackend::new(|options| {
        options.dedicated.sharing = SharingMode::Client;
        options.dedicated.limit = 1;
    })
    .await;
    let alice = AnsweringClient::with_all_capabilities("Alice");
    let in_a = session("a");
    let waiting = setup.call(&alice, &in_a, "wait", "{}");
    let others = async {
        setup.received(|line| line["params"]["name"] == "wait").await;
        let at_once = Some(Instant::now());
        let refused = setup.call_until(&alice, &session("b"), "pid", "{}", at_once).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        let in_b = session("b");
        let mut next = Box::pin(setup.call(&alice, &in_b, "pid", "{}"));
        assert!(poll_immediate(&mut next).await.is_none());
        setup.open_gate();
        next.await
    };
    let (waited, next) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "The gate is open.");
    next.unwrap();
}

/// A stateful server does not show one caller's data to another, even if the clients cannot be distinguished.
#[tokio::test]
async fn anonymous_call_gets_its_own_per_client_connection() {
    let setup = AskingBackend::new(|options| options.dedicated.sharing = SharingMode::Client).await;
    let (alice, nobody) = (AnsweringClient::with_all_capabilities("Alice"), Caller::default());
    let first = setup.text(&alice, &nobody, "pid", "{}").await;
    assert_ne!(setup.text(&alice, &nobody, "pid", "{}").await, first);
    let somebody = session("s");
    let first = setup.text(&alice, &somebody, "pid", "{}").await;
    assert_eq!(setup.text(&alice, &somebody, "pid", "{}").await, first);
}

#[tokio::test]
async fn connections_of_gone_clients_are_closed() {
    let setup =
        AskingBackend::new(|options| options.dedicated.idle_timeout = Duration::from_millis(50)).await;
    let alice = AnsweringClient::with_all_capabilities("Alice");
    for name in ["a", "b", "c"] {
        setup.text(&alice, &session(name), "ask", ELICIT).await;
    }
    until_async("the processes", || setup.processes.list().len() == 1).await;
    // A connection in repeated use stays open, even if one call takes long.
    let caller = session("a");
    let waiting = setup.call(&alice, &caller, "wait", "{}");
    let others = async {
        let pid = setup.received(|line| line["params"]["name"] == "wait").await["pid"].to_string();
        setup.text(&alice, &session("b"), "pid", "{}").await;
        until_async("the processes", || setup.processes.list().len() == 2).await;
        assert_eq!(setup.text(&alice, &caller, "pid", "{}").await, pid);
        setup.open_gate();
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "The gate is open.");
    setup.backend.stop().await;
    assert_eq!(setup.processes.list().len(), 0);
}

#[tokio::test]
async fn clients_share_at_the_process_limit() {
    let setup = AskingBackend::with_processes(2, |_| {}).await;
    let alice = AnsweringClient::with_all_capabilities("Alice");
    assert_ne!(setup.text(&alice, &session("a"), "declared", "{}").await, "{}");
    assert_eq!(setup.text(&alice, &session("b"), "declared", "{}").await, "{}");
}

/// A server of which only one instance can run, such as one with its own port or database. The attempt is not repeated
/// with each call.
#[tokio::test]
async fn clients_share_a_single_instance_server() {
    let setup = AskingBackend::new(|options| options.connect_timeout = Duration::from_secs(2)).await;
    let path = |name: &str| setup.folder.path().join(name);
    std::fs::write(path("single"), "").unwrap();
    let alice = AnsweringClient::with_all_capabilities("Alice");
    for name in ["a", "a", "b"] {
        assert_eq!(setup.text(&alice, &session(name), "declared", "{}").await, "{}");
    }
    assert_eq!(std::fs::read_to_string(path("waiting")).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn hanging_server_is_detected_and_replaced() {
    let probe = LivenessProbe { interval: Duration::from_millis(100), timeout: Duration::from_millis(100) };
    let setup = AskingBackend::new(|options| options.probe = Some(probe)).await;
    for person in
        [AnsweringClient::with_all_capabilities("Alice"), Arc::new(AnsweringClient::new("Bob", "{}"))]
    {
        let caller = session("s");
        let pid = setup.text(&person, &caller, "pid", "{}").await;
        // An "unknown method" error is an answer.
        let number: u32 = pid.parse().unwrap();
        let ping_count = || setup.count(|line| line["method"] == "ping" && line["pid"] == number);
        until_async("a third ping", || ping_count() > 2).await;
        assert_eq!(setup.text(&person, &caller, "pid", "{}").await, pid);
        assert_eq!(setup.text(&person, &caller, "hang", "{}").await, "no more");
        // The first call after that fails with its server, and the next one succeeds.
        let failed = setup.call(&person, &caller, "pid", "{}").await.unwrap_err();
        assert_eq!(failed.code(), ErrorCode::Unavailable);
        assert_ne!(setup.text(&person, &caller, "pid", "{}").await, pid);
    }
}

/// Kills a server during many calls on shared and dedicated connections.
#[tokio::test]
async fn killed_server_fails_only_its_own_calls() {
    for round in 0..3 {
        let setup = AskingBackend::new(|_| {}).await;
        for person in
            [AnsweringClient::with_all_capabilities("Alice"), Arc::new(AnsweringClient::new("Bob", "{}"))]
        {
            let caller = session("s");
            let pid = setup.text(&person, &caller, "pid", "{}").await;
            let before = setup.count(|line| line["params"]["name"] == "wait");
            let waiting = join_all((0..20).map(|_| setup.call(&person, &caller, "wait", "{}")));
            let killing = async {
                until_async("the messages at the server", || {
                    setup.count(|line| line["params"]["name"] == "wait") == before + 20
                })
                .await;
                let killed = Instant::now();
                kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
                killed
            };
            let (failed, killed) = tokio::join!(waiting, killing);
            assert!(killed.elapsed() < LIMIT / 10, "{:?}", killed.elapsed());
            for failed in failed {
                assert_eq!(failed.unwrap_err().code(), ErrorCode::Unavailable);
            }
            let next = setup.call(&person, &caller, "pid", "{}").await;
            assert_ne!(next.unwrap_or_else(|error| panic!("round {round}: {error}")), pid);
        }
    }
}

fn session(name: &str) -> Caller {
    Caller { session: Some(name.into()), ..Caller::default() }
}

const ELICIT: &str = r#"{"method":"elicitation/create","params":{"message":"who?","x":1.0}}"#;
