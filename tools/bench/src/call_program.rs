//! A program that makes the calls of a bench. A case is a line on its standard input: it warms up and prints `ready`,
//! waits for another line, makes the calls, and prints a line with its measurements.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use xtask_support::process::LaunchedProcess;

pub(super) struct CallProgram {
    process: LaunchedProcess,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl CallProgram {
    /// Starts a program with one argument.
    pub(super) fn start(program: &Path, argument: impl AsRef<OsStr>) -> anyhow::Result<CallProgram> {
        let (process, stdin, stdout) =
            LaunchedProcess::launch_with_pipes(program, &[argument.as_ref()], Stdio::inherit())?;
        Ok(CallProgram { process, stdin, lines: BufReader::new(stdout).lines() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Has the calls of a case made. Returns the measurements of the program, and the CPU time of the calls by the clock
    /// `cpu_time` of its process.
    pub(super) fn measure<M: DeserializeOwned>(
        &mut self,
        case: &impl Serialize,
        cpu_time: impl Fn(u32) -> Duration,
    ) -> anyhow::Result<(M, Duration)> {
        let ready = self.exchange_line(&serde_json::to_string(case)?)?;
        ensure!(ready == "ready", "unexpected line: {ready}");
        let before = cpu_time(self.pid());
        let measured = serde_json::from_str(&self.exchange_line("go")?)?;
        Ok((measured, cpu_time(self.pid()).saturating_sub(before)))
    }

    /// Writes a line and reads one.
    fn exchange_line(&mut self, line: &str) -> anyhow::Result<String> {
        writeln!(self.stdin, "{line}")?;
        self.lines.next().context("the program that makes the calls has ended")?.context("read its output")
    }
}
