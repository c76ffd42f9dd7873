//! `toolyard function new`: creates a function from a template.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use serde_json::json;
use toolyard_functions::FunctionKind;
use toolyard_functions::code::SourceLanguage;
use toolyard_functions::project::template;

use super::parse_id;
use crate::output::{OutputFormat, print};

/// Create a function with a working handler and test cases
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function new --lang py weather
  toolyard function new --lang js weather --kind function     takes an event, returns a status and a body

Creates a directory with the name of the function in the current directory. Existing files are not replaced.")]
pub(super) struct NewFunctionArgs {
    /// Language of the function
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    lang: LanguageArg,

    /// Kind of the function
    #[arg(long, value_enum, default_value_t = FunctionKindArg::Mcp)]
    kind: FunctionKindArg,

    /// Name of the function
    #[arg(value_parser = parse_id)]
    name: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum LanguageArg {
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
enum FunctionKindArg {
    /// MCP server with its own tools
    Mcp,
    /// Handler that takes an event and returns a status and a body
    Function,
}

pub(super) fn run(args: &NewFunctionArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let language = match args.lang {
        LanguageArg::Py => SourceLanguage::Python,
        LanguageArg::Js => SourceLanguage::JavaScript,
        LanguageArg::Lua => SourceLanguage::Lua,
    };
    let kind = match args.kind {
        FunctionKindArg::Mcp => FunctionKind::Mcp,
        FunctionKindArg::Function => FunctionKind::Function,
    };
    let folder = PathBuf::from(&args.name);
    let files = template::write(&folder, kind, language, &args.name)
        .with_context(|| format!("cannot create {}", args.name))?;
    print(&match format {
        OutputFormat::Json => json!({"id": args.name, "files": files}).to_string(),
        OutputFormat::Text => {
            let lines: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
            format!("{}\n\nnext: toolyard function dev {}", lines.join("\n"), args.name)
        }
    });
    Ok(ExitCode::SUCCESS)
}
