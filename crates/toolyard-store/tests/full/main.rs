//! The stores through their public interface: one suite over each, and full disks, locked files and killed processes.
//!
//! PostgreSQL is a real server, which a test starts and which ends with the test.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod child;
mod disk;
mod log_model;
mod model;
mod opening;
mod postgres;
mod reopening;
mod suite;
mod tls;
