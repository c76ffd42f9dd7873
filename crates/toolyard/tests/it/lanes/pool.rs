//! Which call has which connection, and who is asked: one backend, clients that say what a test wants, and
//! `scripts/asking.py`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, poll_immediate};
use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::time::Instant;
use toolyard_core::{AskError, Backend, Caller, Code, Json, Object};
use toolyard_mcp::client::{LaneMode, Probe};

use super::yard::{ABLE, Person, Yard, eventually};
use crate::support::LIMIT;

#[tokio::test]
async fn who_has_a_connection_of_its_own() {
    let able = Arc::new(Person::new("Alice", ABLE));
    let unable = Arc::new(Person::new("Bob", "{}"));
    let [everybody, session, principal] =
        [Caller::default(), session("s"), Caller { principal: Some("p".into()), ..Caller::default() }];
    let mut lines = Vec::new();
    for mode in [LaneMode::Automatic, LaneMode::Shared, LaneMode::Client] {
        let yard = Yard::new(|options| options.lanes.mode = mode).await;
        let mut pids = Vec::new();
        for (who, person, caller) in [
            ("nobody in particular who can be asked", &able, &everybody),
            ("a session that can be asked", &able, &session),
            ("a principal that can be asked", &able, &principal),
            ("another that cannot", &unable, &principal),
            ("nobody in particular who cannot", &unable, &everybody),
        ] {
            let pid = yard.text(person, caller, "pid", "{}").await;
            let number = pids.iter().position(|known| *known == pid).unwrap_or(pids.len());
            pids.push(pid);
            let declared = yard.text(person, caller, "declared", "{}").await;
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
async fn what_was_asked_for_nobody_in_particular_ends_with_its_call() {
    let yard = Yard::new(|_| {}).await;
    let (alice, bob, nobody) = (Person::able("Alice"), Person::able("Bob"), Caller::default());
    let first = yard.text(&alice, &nobody, "pid", "{}").await;
    assert_eq!(yard.text(&bob, &nobody, "pid", "{}").await, first);
    assert_eq!(yard.text(&bob, &nobody, "ask", ELICIT).await, r#"{"result": {"name": "Bob"}}"#);
    let second = yard.text(&alice, &nobody, "pid", "{}").await;
    assert_ne!(second, first);
    // Nor is it left to others where it may still be at work on a call that was withdrawn.
    tokio::select! {
        _ = yard.call(&alice, &nobody, "wait", "{}") => panic!("the gate is closed"),
        line = yard.received(|line| line["params"]["name"] == "wait") => {
            assert_eq!(line["pid"].to_string(), second);
        }
    }
    assert_ne!(yard.text(&bob, &nobody, "pid", "{}").await, second);
    assert_eq!((alice.asked(), bob.asked()), (0, 1));
}

/// Servers that have asked for a session's folders hear that they are others; nobody else's do.
#[tokio::test]
async fn folders_that_change() {
    let yard = Yard::new(|_| {}).await;
    let (person, roots) = (Person::able("Alice"), r#"{"method":"roots/list"}"#);
    let [asked, unasked, other] = ["asked", "unasked", "other"].map(session);
    let key = Caller { principal: Some("p".into()), ..Caller::default() };
    let pid = yard.text(&person, &asked, "pid", "{}").await;
    yard.text(&person, &unasked, "pid", "{}").await;
    for caller in [&asked, &other, &key] {
        yard.text(&person, caller, "ask", roots).await;
    }
    for caller in [&unasked, &key, &Caller::default(), &asked] {
        yard.backend.roots_changed(caller);
    }
    let is_news = |line: &Value| line["method"] == "notifications/roots/list_changed";
    assert_eq!(yard.received(is_news).await["pid"].to_string(), pid);
    for caller in [&unasked, &other, &key] {
        // What was sent before has been read.
        yard.text(&person, caller, "pid", "{}").await;
    }
    assert_eq!(yard.count(is_news), 1);
}

/// Two clients may show one key, and nothing tells them apart.
#[tokio::test]
async fn clients_of_one_principal_are_not_asked_for_each_other() {
    for mode in [LaneMode::Automatic, LaneMode::Client] {
        let yard = Yard::new(|options| options.lanes.mode = mode).await;
        let (alice, bob) = (Person::able("Alice"), Person::able("Bob"));
        let caller = Caller { principal: Some("p".into()), ..Caller::default() };
        let asking = yard.call(&alice, &caller, "later", ELICIT);
        let other = async {
            let busy = yard.received(|line| line["params"]["name"] == "later").await["pid"].to_string();
            let mut waiting = Box::pin(yard.call(&bob, &caller, "withdraw", ELICIT));
            bob.be_slow();
            tokio::select! {
                _ = &mut waiting => panic!("the gate is closed"),
                () = eventually(|| bob.is_asked() == 1) => yard.open_gate(),
            }
            assert_eq!(waiting.await.unwrap(), "withdrawn");
            busy
        };
        let (asked, busy) = tokio::join!(asking, other);
        assert_eq!(asked.unwrap(), r#"{"result": {"name": "Alice"}}"#);
        assert_eq!((alice.asked(), bob.asked()), (1, 1), "{mode:?}");
        // What a server remembers is the principal's.
        assert_eq!(yard.text(&alice, &caller, "pid", "{}").await, busy);
    }
}

#[tokio::test]
async fn late_questions_are_refused() {
    let yard = Yard::new(|_| {}).await;
    let (alice, bob, nobody) = (Person::able("Alice"), Person::able("Bob"), Caller::default());
    let late = ELICIT.replacen('{', r#"{"late":true,"#, 1);
    assert_eq!(yard.text(&alice, &nobody, "leave", &late).await, "left");
    let refusal = yard.received(|line| line["error"].is_object()).await;
    assert_snapshot!(refusal["error"], @r#"{"code":-32603,"message":"the client cannot be asked"}"#);
    let next = yard.text(&bob, &nobody, "pid", "{}").await;
    assert_ne!(refusal["pid"].to_string(), next);
    // Nobody waits for the refusal here.
    assert_eq!(yard.text(&alice, &nobody, "leave", &late).await, "left");
    assert_ne!(yard.text(&bob, &nobody, "pid", "{}").await, next);
    assert_eq!((alice.asked(), bob.asked()), (0, 0));
    // It is asked while its call runs, and the call does not wait for the answer.
    alice.be_slow();
    assert_eq!(yard.text(&alice, &session("s"), "leave", ELICIT).await, "left");
    eventually(|| alice.is_asked() == 0).await;
}

#[tokio::test]
async fn a_client_of_a_session_is_asked_whichever_of_its_calls_it_is() {
    let yard = Yard::new(|_| {}).await;
    let (older, newer, caller) = (Person::able("older"), Person::able("newer"), session("s"));
    newer.be_slow();
    older.be_slow();
    let asking = yard.call(&older, &caller, "ask", ELICIT);
    let waiting = yard.call(&newer, &caller, "wait", "{}");
    let ask = async {
        // Both run, and either is asked.
        eventually(|| older.is_asked() + newer.is_asked() == 1).await;
        yard.received(|line| line["params"]["name"] == "wait").await;
        let again = yard.text(&newer, &caller, "log", r#"{"data":"x"}"#).await;
        assert_eq!(again, "logged");
        yard.open_gate();
        // The call that waits is over: if it was asked, the other is asked now.
        eventually(|| older.is_asked() == 1).await;
        older.be_quick();
    };
    let (asked, waited, ()) = tokio::join!(asking, waiting, ask);
    assert_eq!(asked.unwrap(), r#"{"result": {"name": "older"}}"#);
    assert_eq!(waited.unwrap(), "The gate is open.");
}

#[tokio::test]
async fn questions_end_with_their_call_and_with_the_servers_interest() {
    let yard = Yard::new(|_| {}).await;
    let (alice, caller) = (Person::able("Alice"), session("s"));
    alice.be_slow();
    tokio::select! {
        _ = yard.call(&alice, &caller, "ask", ELICIT) => panic!("nobody answers"),
        () = eventually(|| alice.is_asked() == 1) => {}
    }
    assert_eq!(alice.is_asked(), 0);
    yard.received(|line| line["method"] == "notifications/cancelled").await;
    yard.received(|line| line["error"].is_object()).await;
    let withdrawing = yard.call(&alice, &caller, "withdraw", ELICIT);
    let withdrawn = async {
        eventually(|| alice.is_asked() == 1).await;
        yard.open_gate();
    };
    let (withdrew, ()) = tokio::join!(withdrawing, withdrawn);
    assert_eq!(withdrew.unwrap(), "withdrawn");
    assert_eq!(alice.is_asked(), 0);
}

/// The official server of files asks once for the folders of its client, before it has any call.
#[tokio::test]
async fn what_is_asked_before_any_call_is_put_to_the_first_one() {
    let yard = Yard::new(|_| {}).await;
    std::fs::write(yard.folder.path().join("roots"), "").unwrap();
    let (alice, bob) = (Person::able("Alice"), Person::able("Bob"));
    let known = r#"{"result": {"name": "Alice"}}"#;
    assert_eq!(yard.text(&alice, &session("a"), "roots", "{}").await, known);
    assert_eq!((alice.questions(), bob.asked()), (vec!["Roots {}".to_owned()], 0));
    // Who takes long is asked again by way of the next call, and only then.
    bob.be_slow();
    assert_eq!(yard.text(&bob, &session("b"), "roots", "{}").await, "null");
    assert_eq!((bob.is_asked(), bob.asked()), (0, 1));
    bob.be_quick();
    yard.open_gate();
    yard.text(&bob, &session("b"), "wait", "{}").await;
    assert_eq!(yard.text(&bob, &session("b"), "roots", "{}").await, r#"{"result": {"name": "Bob"}}"#);
    assert_eq!((alice.asked(), bob.asked()), (1, 2));
}

#[tokio::test]
async fn questions_that_are_open_are_bounded() {
    let yard = Yard::new(|_| {}).await;
    let alice = Person::able("Alice");
    alice.be_slow();
    let (many, caller) = (ELICIT.replacen('{', r#"{"count":50,"#, 1), session("s"));
    let flood = yard.call(&alice, &caller, "flood", &many);
    let answering = async {
        eventually(|| yard.count(|line| line["error"].is_object()) == 50 - 16).await;
        assert_eq!(alice.is_asked(), 16);
        alice.be_quick();
    };
    let (responses, ()) = tokio::join!(flood, answering);
    assert_eq!(responses.unwrap().matches(r#""result""#).count(), 16);
}

#[tokio::test]
async fn what_clients_say_reaches_the_server_as_it_is() {
    let yard = Yard::new(|_| {}).await;
    let caller = session("s");
    let roots = r#"{"method":"roots/list"}"#;
    let sample = r#"{"method":"sampling/createMessage","params":{"maxTokens":1.0}}"#;
    let mut lines = Vec::new();
    for question in [ELICIT, sample, roots, r#"{"method":"ping"}"#, r#"{"method":"tools/list"}"#] {
        let alice = Person::able("Alice");
        lines.push(yard.text(&alice, &caller, "ask", question).await);
        lines.extend(alice.questions());
    }
    let modest = Person::new("Alice", r#"{"roots":{}}"#);
    lines.push(yard.text(&Arc::new(modest), &caller, "ask", ELICIT).await);
    let refused = toolyard_core::Json::parse(r#"{"code":-1,"message":"no","data":[1.0]}"#).unwrap();
    for error in [
        AskError::Refused(refused),
        AskError::Unsupported(Object::new().with("elicitation", Json::parse(r#"{"url":{}}"#).unwrap())),
        AskError::BadQuestion("it is none".to_owned()),
        AskError::TooLate,
    ] {
        let alice = Person::able("Alice");
        alice.answer(Err(error));
        lines.push(yard.text(&alice, &caller, "ask", ELICIT).await);
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
async fn the_log_of_a_lane_goes_to_its_client() {
    let yard = Yard::new(|_| {}).await;
    let (alice, unable) = (Person::able("Alice"), Arc::new(Person::new("Bob", "{}")));
    for person in [&alice, &unable] {
        assert_eq!(yard.text(person, &session("s"), "log", r#"{"data":"dear Alice"}"#).await, "logged");
    }
    assert_eq!(alice.notices(), [r#"{"level":"error","data":"dear Alice"}"#]);
    assert_eq!(unable.notices(), Vec::<String>::new());
}

#[tokio::test]
async fn there_are_only_so_many() {
    let yard = Yard::new(|options| options.lanes.most = 2).await;
    let alice = Person::able("Alice");
    let pid = async |name: &str| yard.text(&alice, &session(name), "pid", "{}").await;
    let (a, b) = (pid("a").await, pid("b").await);
    assert_eq!((pid("a").await, pid("b").await, pid("a").await), (a.clone(), b.clone(), a.clone()));
    // The one that was used least recently makes room.
    let c = pid("c").await;
    assert_eq!((pid("a").await, pid("c").await), (a.clone(), c.clone()));
    assert_ne!(pid("b").await, b);
    // While all are in use, the others wait: nobody would be asked on the shared connection.
    let (in_a, in_b) = (session("b"), session("c"));
    let waiting = [yard.call(&alice, &in_a, "wait", "{}"), yard.call(&alice, &in_b, "wait", "{}")];
    let sharing = async {
        eventually(|| yard.count(|line| line["params"]["name"] == "wait") == 2).await;
        let at_once = Some(Instant::now());
        let refused = yard.call_until(&alice, &session("d"), "pid", "{}", at_once).await.unwrap_err();
        assert_eq!(refused.code(), Code::Overloaded);
        let in_d = session("d");
        let mut next = Box::pin(yard.call(&alice, &in_d, "declared", "{}"));
        assert!(poll_immediate(&mut next).await.is_none());
        yard.open_gate();
        assert_ne!(next.await.unwrap(), "{}");
    };
    let (waited, ()) = tokio::join!(join_all(waiting), sharing);
    assert!(waited.iter().all(Result::is_ok), "{waited:?}");
    assert_eq!(alice.asked(), 0);
}

#[tokio::test]
async fn where_each_client_has_its_own_the_next_one_waits() {
    let yard = Yard::new(|options| {
        options.lanes.mode = LaneMode::Client;
        options.lanes.most = 1;
    })
    .await;
    let alice = Person::able("Alice");
    let in_a = session("a");
    let waiting = yard.call(&alice, &in_a, "wait", "{}");
    let others = async {
        yard.received(|line| line["params"]["name"] == "wait").await;
        let at_once = Some(Instant::now());
        let refused = yard.call_until(&alice, &session("b"), "pid", "{}", at_once).await.unwrap_err();
        assert_eq!(refused.code(), Code::Overloaded);
        let in_b = session("b");
        let mut next = Box::pin(yard.call(&alice, &in_b, "pid", "{}"));
        assert!(poll_immediate(&mut next).await.is_none());
        yard.open_gate();
        next.await
    };
    let (waited, next) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "The gate is open.");
    next.unwrap();
}

/// A server that remembers shows nobody what another one has told it, also where clients cannot be told apart.
#[tokio::test]
async fn where_each_client_has_its_own_a_call_of_nobody_in_particular_has_too() {
    let yard = Yard::new(|options| options.lanes.mode = LaneMode::Client).await;
    let (alice, nobody) = (Person::able("Alice"), Caller::default());
    let first = yard.text(&alice, &nobody, "pid", "{}").await;
    assert_ne!(yard.text(&alice, &nobody, "pid", "{}").await, first);
    let somebody = session("s");
    let first = yard.text(&alice, &somebody, "pid", "{}").await;
    assert_eq!(yard.text(&alice, &somebody, "pid", "{}").await, first);
}

#[tokio::test]
async fn nothing_is_left_of_clients_that_left() {
    let yard = Yard::new(|options| options.lanes.idle_time = Duration::from_millis(50)).await;
    let alice = Person::able("Alice");
    for name in ["a", "b", "c"] {
        yard.text(&alice, &session(name), "ask", ELICIT).await;
    }
    eventually(|| yard.processes.list().len() == 1).await;
    // What is called again and again stays, also where one call takes long.
    let caller = session("a");
    let waiting = yard.call(&alice, &caller, "wait", "{}");
    let others = async {
        let pid = yard.received(|line| line["params"]["name"] == "wait").await["pid"].to_string();
        yard.text(&alice, &session("b"), "pid", "{}").await;
        eventually(|| yard.processes.list().len() == 2).await;
        assert_eq!(yard.text(&alice, &caller, "pid", "{}").await, pid);
        yard.open_gate();
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "The gate is open.");
    yard.backend.stop().await;
    assert_eq!(yard.processes.list().len(), 0);
}

#[tokio::test]
async fn where_no_more_programs_may_run_clients_share() {
    let yard = Yard::with_processes(2, |_| {}).await;
    let alice = Person::able("Alice");
    assert_ne!(yard.text(&alice, &session("a"), "declared", "{}").await, "{}");
    assert_eq!(yard.text(&alice, &session("b"), "declared", "{}").await, "{}");
}

/// A server of which only one may run, as those with a port or a database of their own. It is not tried with each call.
#[tokio::test]
async fn where_no_second_server_answers_clients_share() {
    let yard = Yard::new(|options| options.connect_time = Duration::from_secs(2)).await;
    let path = |name: &str| yard.folder.path().join(name);
    std::fs::write(path("single"), "").unwrap();
    let alice = Person::able("Alice");
    for name in ["a", "a", "b"] {
        assert_eq!(yard.text(&alice, &session(name), "declared", "{}").await, "{}");
    }
    assert_eq!(std::fs::read_to_string(path("waiting")).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_server_that_hangs_is_found_and_replaced() {
    let probe = Probe { interval: Duration::from_millis(100), time: Duration::from_millis(100) };
    let yard = Yard::new(|options| options.probe = Some(probe)).await;
    for person in [Person::able("Alice"), Arc::new(Person::new("Bob", "{}"))] {
        let caller = session("s");
        let pid = yard.text(&person, &caller, "pid", "{}").await;
        // That it does not know the question is an answer.
        let number: u32 = pid.parse().unwrap();
        let asked = || yard.count(|line| line["method"] == "ping" && line["pid"] == number);
        eventually(|| asked() > 2).await;
        assert_eq!(yard.text(&person, &caller, "pid", "{}").await, pid);
        assert_eq!(yard.text(&person, &caller, "hang", "{}").await, "no more");
        // The first call after that fails with its server, and the next one does not.
        let failed = yard.call(&person, &caller, "pid", "{}").await.unwrap_err();
        assert_eq!(failed.code(), Code::Unavailable);
        assert_ne!(yard.text(&person, &caller, "pid", "{}").await, pid);
    }
}

/// With many calls under way, shared and not.
#[tokio::test]
async fn a_server_that_is_killed_takes_its_calls_with_it_and_no_other() {
    for round in 0..3 {
        let yard = Yard::new(|_| {}).await;
        for person in [Person::able("Alice"), Arc::new(Person::new("Bob", "{}"))] {
            let caller = session("s");
            let pid = yard.text(&person, &caller, "pid", "{}").await;
            let before = yard.count(|line| line["params"]["name"] == "wait");
            let waiting = join_all((0..20).map(|_| yard.call(&person, &caller, "wait", "{}")));
            let killing = async {
                eventually(|| yard.count(|line| line["params"]["name"] == "wait") == before + 20).await;
                let killed = Instant::now();
                kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
                killed
            };
            let (failed, killed) = tokio::join!(waiting, killing);
            assert!(killed.elapsed() < LIMIT / 10, "{:?}", killed.elapsed());
            for failed in failed {
                assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
            }
            let next = yard.call(&person, &caller, "pid", "{}").await;
            assert_ne!(next.unwrap_or_else(|error| panic!("round {round}: {error}")), pid);
        }
    }
}

fn session(name: &str) -> Caller {
    Caller { session: Some(name.into()), ..Caller::default() }
}

const ELICIT: &str = r#"{"method":"elicitation/create","params":{"message":"who?","x":1.0}}"#;
