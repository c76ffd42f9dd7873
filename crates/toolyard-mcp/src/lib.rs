//! The Model Context Protocol, as client and as server, in both eras.
//!
//! *Legacy* revisions (2025-11-25 and older) open a session with `initialize`. The *modern* revision (2026-07-28) is
//! stateless: each request carries everything. The server endpoint accepts both eras; the client uses the era of each
//! upstream server.
//!
//! - [`wire`]: messages, revisions, errors, names; no I/O;
//! - [`server`]: the frontend, which turns messages of clients into calls;
//! - [`client`]: the backend, which turns calls into requests to an upstream server.
//!
//! Payloads (arguments, results, definitions) are relayed unchanged and are never turned into typed values.

pub mod client;
mod lines;
pub mod server;
pub mod wire;
