//! `toolyard completions`: what a shell needs to complete our commands.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::Cli;
use crate::output::{Format, print};

/// Print the script with which a shell completes our commands
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard completions bash > ~/.local/share/bash-completion/completions/toolyard
  toolyard completions zsh > ~/.zfunc/_toolyard
  toolyard completions fish > ~/.config/fish/completions/toolyard.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, format: Format) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "toolyard", &mut script);
    let script = String::from_utf8_lossy(&script);
    print(&match format {
        Format::Text => script.trim_end().to_owned(),
        Format::Json => json!({"shell": args.shell.to_string(), "script": script}).to_string(),
    });
    ExitCode::SUCCESS
}
