//! Two gateways on one PostgreSQL share keys and quotas, even if one of them fails.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use toolyard_testing::http::send_with_key;
use toolyard_testing::postgres::PostgresServer;
use toolyard_testing::scripted_server::ScriptedServer;
use toolyard_testing::wait::eventually;

use crate::support::gateway::TestGateway;

/// `timeouts.keyCheck` of both.
const KEY_CHECK: Duration = Duration::from_millis(500);

/// Tolerance for a busy machine.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The quota of these tests, and the largest share that a gateway reserves: a sixty-fourth.
const QUOTA: usize = 300;
const QUOTA_SHARE: usize = QUOTA / 64;

/// Two gateways with a tool each, and their database.
struct GatewayPair {
    one: TestGateway,
    other: TestGateway,
    admin: String,
    _tools: [ScriptedServer; 2],
    _server: PostgresServer,
}

impl GatewayPair {
    #[track_caller]
    fn start() -> Self {
        let server = PostgresServer::start();
        let tools = ["one", "other"].map(ScriptedServer::new);
        let [one, other] = tools.each_ref().map(|tool| {
            let check = format!("{}ms", KEY_CHECK.as_millis());
            TestGateway::with_settings(
                &[tool.handler()],
                json!({"store": {"url": server.url()}, "timeouts": {"keyCheck": check}}),
            )
        });
        let admin = one.new_key("", json!({"name": "admin", "scopes": ["admin", "rest"]}));
        Self { one, other, admin, _tools: tools, _server: server }
    }

    /// Creates a key with a quota at the first gateway.
    #[track_caller]
    fn key_with_quota(&self) -> String {
        let key_settings = json!({"name": "q", "scopes": ["tools:*", "rest"], "calls": QUOTA.to_string()});
        self.one.new_key(&self.admin, key_settings)
    }
}

/// Calls a tool. Returns false if the quota is exhausted.
#[track_caller]
fn call(address: SocketAddr, key: &str) -> bool {
    let called = send_with_key(address, key, "POST /api/v1/tools/pid/call", "{}");
    match called.status {
        200 => true,
        402 => false,
        _ => panic!("{called:?}"),
    }
}

/// Calls until the quota is exhausted and returns the number of successful calls.
#[track_caller]
fn use_up(address: SocketAddr, key: &str) -> usize {
    (0..).take_while(|_| call(address, key)).count()
}

#[test]
fn key_is_created_and_revoked_on_both_gateways() {
    let GatewayPair { one, other, admin, .. } = &GatewayPair::start();
    let key = one.new_key(admin, json!({"name": "k", "scopes": ["rest"]}));
    for gateway in [one, other] {
        assert_eq!(send_with_key(gateway.address, &key, "GET /api/v1/status", "").status, 200);
    }
    let id = key.split('_').nth(1).unwrap();
    let revoked = send_with_key(other.address, admin, &format!("DELETE /api/v1/keys/{id}"), "");
    assert_eq!(revoked.status, 200, "{}", revoked.body);
    let since = Instant::now();
    assert_eq!(send_with_key(other.address, &key, "GET /api/v1/status", "").status, 401);
    eventually("the other one refuses the key", || {
        (send_with_key(one.address, &key, "GET /api/v1/status", "").status == 401).then_some(())
    });
    assert!(since.elapsed() < KEY_CHECK + TOLERANCE, "{:?}", since.elapsed());
}

#[test]
fn quota_is_exact_across_gateways() {
    let mut pair = GatewayPair::start();
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
    assert!((QUOTA - 2 * QUOTA_SHARE..=QUOTA).contains(&ran), "{ran} calls were run");
    // The unused reservation of the first gateway is available to the other.
    pair.one.process.signal(Signal::TERM);
    assert!(pair.one.process.wait().success());
    assert_eq!(ran + use_up(pair.other.address, &key), QUOTA);
}

#[test]
fn killed_gateway_loses_at_most_its_share() {
    let mut pair = GatewayPair::start();
    let key = pair.key_with_quota();
    assert!(call(pair.one.address, &key));
    pair.one.process.signal(Signal::KILL);
    pair.one.process.wait();
    let ran = 1 + use_up(pair.other.address, &key);
    assert_eq!(ran, QUOTA - QUOTA_SHARE, "it had taken a part with its first call");
}
