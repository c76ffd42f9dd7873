//! Hosted functions: tools written in Python, JavaScript or Lua, in versions.
//!
//! - [`code`]: a version as it runs: its files, its language, and what it may take;
//! - [`run`]: the port of whatever has code answer events;
//! - [`runtime`]: has it answer them, in worker processes that can be killed;
//! - [`version`]: numbers of versions, and which of them a caller means.

pub mod code;
pub mod run;
pub mod runtime;
pub mod version;
