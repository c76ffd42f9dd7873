//! Scripts over tools: `run_tool_script` runs a script in JavaScript or Lua, which calls the tools of its caller, and
//! `describe_tools` shows tools as TypeScript. Intermediate results stay in the script.
//!
//! - [`names`]: names of tools in scripts;
//! - [`typescript`]: JSON Schemas as types;
//! - [`shapes`]: types of results that no schema describes;
//! - [`results`]: results and errors of calls as scripts see them;
//! - [`calls`]: the calls of one script, within its limits;
//! - [`engine`]: runs scripts in the workers of hosted functions; `prelude.js` and `prelude.lua` run within them;
//! - [`report`]: the text that a model reads about a script;
//! - [`describe`]: the text of `describe_tools`;
//! - [`tools`]: the tools.

pub mod calls;
pub mod describe;
pub mod engine;
pub mod names;
pub mod report;
pub mod results;
pub mod shapes;
pub mod tools;
pub mod typescript;

#[cfg(test)]
mod testing;

use toolyard_agent::guides::GuideDocument;

/// Guide to scripts over tools.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "code-mode",
    "Call many tools in one script: loops, filters, parallel calls, and results that never fill your window",
    include_str!("guide.md"),
);
