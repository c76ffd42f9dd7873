//! The tools that agents always need, written with the SDK. The gateway publishes them as one handler.
//!
//! - [`scripts`]: Python, run where it can do no harm;
//! - [`memory`]: what a model puts aside for a while;
//! - [`large`]: results that do not fit into a model's window, put there in pieces;
//! - [`chunk`]: long texts in pieces that a model can read one by one;
//! - [`trim`]: results made shorter after a model has refused them, for hosts;
//! - [`guides`]: what a model reads to learn how tools are used well;
//! - [`management`]: the servers behind the gateway, and more of them while it runs;
//! - [`skills`]: what a model has learned and keeps for later sessions;
//! - [`summary`]: what a server is for, in a sentence;
//! - [`search`]: finding tools and services among more than a model can be shown;
//! - [`record`]: tools and calls as JSON, for hosts with a registry and a bus.

pub mod chunk;
pub mod guides;
pub mod large;
pub mod management;
pub mod memory;
pub mod record;
pub mod scripts;
pub mod search;
pub mod skills;
pub mod summary;
pub mod trim;

#[cfg(test)]
mod page;
#[cfg(test)]
mod testing;
