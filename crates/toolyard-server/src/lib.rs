//! The composition root: a manifest becomes a running gateway.
//!
//! - [`server`]: starts everything in its order, and stops it;
//! - [`build`]: a handler of the manifest becomes a backend;
//! - [`assemble`]: what all backends offer becomes one registry;
//! - [`routes`]: the doors;
//! - [`counters`]: what is known of all calls.
//!
//! Here crates meet that do not know each other. There is no logic of a protocol.

pub mod assemble;
pub mod build;
pub mod counters;
pub mod routes;
pub mod server;

pub use server::{Options, Running, StartError, start};
