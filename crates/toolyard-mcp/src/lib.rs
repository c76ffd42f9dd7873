//! The Model Context Protocol, in both directions and both eras.
//!
//! *Legacy* revisions (2025-11-25 and older) open a session with `initialize`; the *modern* one
//! (2026-07-28) is stateless and says everything in each request. Both are spoken on one endpoint to
//! clients, and each server behind the gateway is spoken to in its own.
//!
//! - [`wire`]: messages, revisions, errors, names; no I/O;
//! - [`server`]: the frontend, which turns messages of clients into calls;
//! - [`client`]: the backend, which turns calls into messages for a server;
//! - [`seal`]: state that travels through a client.
//!
//! Payloads (arguments, results, definitions) are never turned into typed values here: they are
//! relayed as they came.

pub mod client;
mod lines;
pub mod seal;
pub mod server;
pub mod wire;
