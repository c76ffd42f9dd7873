//! Two gateways on one PostgreSQL: keys and quotas are the same on both, whatever happens to one of them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::http;
use crate::support::postgres::Server;
use crate::support::scripted::Scripted;

/// `timeouts.keyCheck` of both.
const KEY_CHECK: Duration = Duration::from_millis(500);

/// What a busy machine may add to it.
const SLACK: Duration = Duration::from_secs(2);

/// The quota of these tests, and the largest part of it that a gateway takes for itself: a sixty-fourth.
const QUOTA: usize = 300;
const PART: usize = QUOTA / 64;

/// Two gateways with a tool each, and their database.
struct Pair {
    one: Gateway,
    other: Gateway,
    admin: String,
    _tools: [Scripted; 2],
    _server: Server,
}

impl Pair {
    #[track_caller]
    fn start() -> Self {
        let server = Server::start();
        let tools = ["one", "other"].map(Scripted::new);
        let [one, other] = tools.each_ref().map(|tool| {
            let check = format!("{}ms", KEY_CHECK.as_millis());
            Gateway::with(
                &[tool.handler()],
                json!({"store": {"url": server.url()}, "timeouts": {"keyCheck": check}}),
            )
        });
        let admin = one.new_key("", json!({"name": "admin", "scopes": ["admin", "rest"]}));
        Self { one, other, admin, _tools: tools, _server: server }
    }

    /// A key with a quota, made at the first of them.
    #[track_caller]
    fn key_with_quota(&self) -> String {
        let wanted = json!({"name": "q", "scopes": ["tools:*", "rest"], "calls": QUOTA.to_string()});
        self.one.new_key(&self.admin, wanted)
    }
}

#[track_caller]
fn ask(address: SocketAddr, key: &str, line: &str, body: &str) -> http::Response {
    let shown = format!("Bearer {key}");
    let headers = [("Content-Type", "application/json"), ("Authorization", &*shown)];
    http::send(address, line, if key.is_empty() { &headers[..1] } else { &headers }, body)
}

/// Calls a tool; whether the quota was enough.
#[track_caller]
fn call(address: SocketAddr, key: &str) -> bool {
    let called = ask(address, key, "POST /api/v1/tools/pid/call", "{}");
    match called.status {
        200 => true,
        402 => false,
        _ => panic!("{called:?}"),
    }
}

/// Calls until the quota is used up; gives how many calls were run.
#[track_caller]
fn use_up(address: SocketAddr, key: &str) -> usize {
    (0..).take_while(|_| call(address, key)).count()
}

#[test]
fn a_key_opens_both_at_once_and_neither_once_it_is_revoked() {
    let Pair { one, other, admin, .. } = &Pair::start();
    let key = one.new_key(admin, json!({"name": "k", "scopes": ["rest"]}));
    for gateway in [one, other] {
        assert_eq!(ask(gateway.address, &key, "GET /api/v1/status", "").status, 200);
    }
    let id = key.split('_').nth(1).unwrap();
    let revoked = ask(other.address, admin, &format!("DELETE /api/v1/keys/{id}"), "");
    assert_eq!(revoked.status, 200, "{}", revoked.body);
    let since = Instant::now();
    assert_eq!(ask(other.address, &key, "GET /api/v1/status", "").status, 401);
    eventually("the other one refuses the key", || {
        (ask(one.address, &key, "GET /api/v1/status", "").status == 401).then_some(())
    });
    assert!(since.elapsed() < KEY_CHECK + SLACK, "{:?}", since.elapsed());
}

#[test]
fn a_quota_is_never_exceeded_and_all_of_it_can_be_used() {
    let mut pair = Pair::start();
    let key = pair.key_with_quota();
    let ran = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let address = if number % 2 == 0 { pair.one.address } else { pair.other.address };
            let (key, ran) = (&key, &ran);
            scope.spawn(move || ran.fetch_add(use_up(address, key), Ordering::Relaxed));
        }
    });
    let ran = ran.into_inner();
    assert!((QUOTA - 2 * PART..=QUOTA).contains(&ran), "{ran} calls were run");
    // What the first one had taken for itself is there for the other.
    pair.one.process.signal(Signal::TERM);
    assert!(pair.one.process.wait().success());
    assert_eq!(ran + use_up(pair.other.address, &key), QUOTA);
}

#[test]
fn with_a_killed_gateway_no_more_is_lost_than_its_part() {
    let mut pair = Pair::start();
    let key = pair.key_with_quota();
    assert!(call(pair.one.address, &key));
    pair.one.process.signal(Signal::KILL);
    pair.one.process.wait();
    let ran = 1 + use_up(pair.other.address, &key);
    assert_eq!(ran, QUOTA - PART, "it had taken a part with its first call");
}
