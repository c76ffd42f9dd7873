//! Hosted functions: tools written in Python, JavaScript or Lua, in versions.
//!
//! - [`code`]: a version as it runs: its files, its language, and what it may take;
//! - `runtime`: has code answer events, in worker processes that can be killed.

pub mod code;
