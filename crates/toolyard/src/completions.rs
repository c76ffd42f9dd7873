//! `toolyard completions`: completion scripts for shells.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::CommandLine;
use crate::output::{OutputFormat, print};

/// Print a shell completion script
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard completions bash > ~/.local/share/bash-completion/completions/toolyard
  toolyard completions zsh > ~/.zfunc/_toolyard
  toolyard completions fish > ~/.config/fish/completions/toolyard.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, format: OutputFormat) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "toolyard", &mut script);
    let script = String::from_utf8_lossy(&script);
    print(&match format {
        OutputFormat::Text => script.trim_end().to_owned(),
        OutputFormat::Json => json!({"shell": args.shell.to_string(), "script": script}).to_string(),
    });
    ExitCode::SUCCESS
}
