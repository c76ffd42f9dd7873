//! What the tests have in common.
//!
//! - [`peers`]: where the foreign software is;
//! - [`process`]: other programs, run to their end or kept for a test;
//! - [`family`]: all processes that come of one handler;
//! - [`gateway`]: a gateway that serves;
//! - [`http`], [`message`]: requests, as bytes on a socket;
//! - [`scripted`]: servers that do what a test wants;
//! - [`postgres`]: a database server, as the tests of the store start it.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

pub(crate) mod family;
pub(crate) mod gateway;
pub(crate) mod http;
pub(crate) mod message;
pub(crate) mod peers;
#[expect(dead_code, reason = "the tests of the store do more with it")]
#[path = "../../../../toolyard-store/tests/it/server.rs"]
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod scripted;

use std::time::{Duration, Instant};

/// How long anything may take on a busy machine. Nothing waits that long where all is well.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
