//! Servers as their authors write them, seen by a client.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod changes;
mod handlers;
mod http;
mod limits;
mod others;
mod registering;
mod support;
mod ui;
