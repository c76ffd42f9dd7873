//! The stores as their users have them: one suite over each, and what happens when a disk is full, a file is locked, or
//! a process is killed.
//!
//! PostgreSQL is a real one, which a test starts for itself and which ends with it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod child;
mod disk;
mod model;
mod opening;
mod postgres;
mod reopening;
mod server;
mod suite;
mod tls;
