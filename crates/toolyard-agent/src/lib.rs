//! Built-in tools for agents, written with the SDK. The gateway publishes them as one handler.
//!
//! - [`scripts`]: runs Python scripts in a sandbox;
//! - [`memory`]: keeps data of a model for a while;
//! - [`large`]: puts results that do not fit into a model's context window into working memory;
//! - [`chunk`]: splits long texts into chunks that a model can read one by one;
//! - [`trim`]: shortens results after a model has refused a conversation, for hosts;
//! - [`guides`]: explains to a model how to use tools well;
//! - [`instructions`]: tells a model how to find and call tools;
//! - [`openrouter`]: reads account information of OpenRouter;
//! - [`management`]: lists, calls, adds and removes the servers behind the gateway;
//! - [`skills`]: keeps the skills of a model for later sessions;
//! - [`summary`]: summarizes a server in a sentence;
//! - [`search`]: finds tools and services among more than a model can be shown;
//! - [`background_tasks`]: work of tools that outlives its call.

pub mod background_tasks;
pub mod chunk;
pub mod guides;
pub mod instructions;
pub mod large;
pub mod management;
pub mod memory;
pub mod openrouter;
pub mod scripts;
pub mod search;
pub mod skills;
pub mod summary;
pub mod trim;

#[cfg(test)]
mod documentation_tests;
#[cfg(test)]
mod testing;
