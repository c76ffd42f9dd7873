//! Shared test support.
//!
//! - [`peers`]: third-party clients and servers;
//! - [`process`]: child processes, run to completion or until the end of a test;
//! - [`process_tree`]: all processes that come of one handler;
//! - [`gateway`]: a running gateway;
//! - [`http`], [`message`]: HTTP requests and JSON-RPC messages;
//! - [`scripted`]: scripted MCP servers;
//! - [`postgres`]: a PostgreSQL server, shared with the tests of the store.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

pub(crate) mod gateway;
pub(crate) mod http;
pub(crate) mod message;
pub(crate) mod peers;
#[expect(dead_code, reason = "the tests of the store do more with it")]
#[path = "../../../toolyard-store/tests/it/server.rs"]
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod process_tree;
pub(crate) mod scripted;

use std::time::{Duration, Instant};

/// Time limit of any wait, generous enough for a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Polls until `attempt` returns a value.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
