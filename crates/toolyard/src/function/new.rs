//! `toolyard function new`: where an author begins.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use serde_json::json;
use toolyard_functions::Kind;
use toolyard_functions::code::Language;
use toolyard_functions::project::template;

use super::id;
use crate::output::{Format, print};

/// Begin a function: a folder with a handler that works, and its test cases
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function new --lang py weather
  toolyard function new --lang js weather --kind function     an event in, a status and a body out

The folder has the name of the function, and is made here. Nothing that is there is replaced.")]
pub(super) struct Args {
    /// What it is written in
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    lang: Lang,

    /// What it answers
    #[arg(long, value_enum, default_value_t = Answers::Mcp)]
    kind: Answers,

    /// What it is called
    #[arg(value_parser = id)]
    name: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Lang {
    /// Python 3
    #[value(alias = "python")]
    Py,
    /// JavaScript, synchronous
    #[value(alias = "javascript")]
    Js,
    /// Lua 5.4
    Lua,
}

#[derive(Clone, Copy, ValueEnum)]
enum Answers {
    /// JSON-RPC requests, as an MCP server with tools of its own
    Mcp,
    /// Events of any form, with a status and a body
    Function,
}

pub(super) fn run(args: &Args, format: Format) -> anyhow::Result<ExitCode> {
    let language = match args.lang {
        Lang::Py => Language::Python,
        Lang::Js => Language::JavaScript,
        Lang::Lua => Language::Lua,
    };
    let kind = match args.kind {
        Answers::Mcp => Kind::Mcp,
        Answers::Function => Kind::Function,
    };
    let folder = PathBuf::from(&args.name);
    let files = template::write(&folder, kind, language, &args.name)
        .with_context(|| format!("cannot begin {}", args.name))?;
    print(&match format {
        Format::Json => json!({"id": args.name, "files": files}).to_string(),
        Format::Text => {
            let lines: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
            format!("{}\n\nnext: toolyard function dev {}", lines.join("\n"), args.name)
        }
    });
    Ok(ExitCode::SUCCESS)
}
