//! Servers as their authors write them, seen by a client.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::disallowed_methods, reason = "what tests start are no programs of the crate")]

mod changes;
mod handlers;
mod http;
mod limits;
mod others;
mod principals;
mod registering;
mod stdio;
mod stopping;
mod support;
mod ui;
