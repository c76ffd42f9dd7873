//! Tests of servers through a client.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]
#![expect(clippy::disallowed_methods, reason = "the tests start programs of their own")]

mod handlers;
mod http;
mod limits;
mod list_changes;
mod principals;
mod prompts_and_resources;
mod registration;
mod shutdown;
mod stdio;
mod support;
mod ui;
