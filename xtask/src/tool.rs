//! The tools beside xtask, such as the bench: a package each, so that a command compiles only the tool that it runs.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, bail};
use xtask_support::builds::{CargoProfile, sibling_program};
use xtask_support::process;

/// A package below `tools` with a command of the same name.
#[derive(Clone, Copy)]
pub(crate) enum XtaskTool {
    Arena,
    Bench,
    Corpus,
    Dist,
    Matrix,
    Pages,
    Retrieval,
}

/// The arguments of a tool, which it parses itself.
#[derive(clap::Args)]
pub(crate) struct ToolArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl XtaskTool {
    fn package(self) -> &'static str {
        match self {
            XtaskTool::Arena => "xtask-arena",
            XtaskTool::Bench => "xtask-bench",
            XtaskTool::Corpus => "xtask-corpus",
            XtaskTool::Dist => "xtask-dist",
            XtaskTool::Matrix => "xtask-matrix",
            XtaskTool::Pages => "xtask-pages",
            XtaskTool::Retrieval => "xtask-retrieval",
        }
    }

    /// Returns `true` if the tool reports times, which a build without optimisation would distort.
    fn is_optimised(self, args: &ToolArgs) -> bool {
        match self {
            XtaskTool::Bench => !args.args.iter().any(|arg| arg == "--quick"),
            XtaskTool::Corpus | XtaskTool::Pages | XtaskTool::Retrieval => true,
            XtaskTool::Arena | XtaskTool::Dist | XtaskTool::Matrix => false,
        }
    }

    /// Builds the tool, and continues as that program in the caller's folder.
    pub(crate) fn exec(self, args: &ToolArgs) -> anyhow::Result<()> {
        let mut cargo = process::cargo();
        cargo.current_dir(std::env::current_dir().context("find the current folder")?);
        cargo.args(["run", "--quiet", "--package", self.package(), "--manifest-path"]);
        cargo.arg(xtask_support::root().join("Cargo.toml"));
        if self.is_optimised(args) {
            cargo.args(["--profile", CargoProfile::Dist.name()]);
        }
        let error = cargo.arg("--").args(&args.args).exec();
        bail!("cannot run cargo: {error}")
    }

    /// Runs the tool of the latest build of the workspace.
    pub(crate) fn check<A: AsRef<OsStr>>(self, args: &[A]) -> anyhow::Result<()> {
        process::run(Command::new(sibling_program(self.package())?).args(args))
    }
}
