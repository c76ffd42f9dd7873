//! `toolyard stdio`, started by its client: a message a line.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::ChildStdin;

use anyhow::Context;
use serde_json::Value;

use super::Door;
use super::link::{Heard, Inbox, Origin};
use crate::builds::built;
use crate::process::Process;

pub(super) struct Stdio {
    input: ChildStdin,
    _process: Process,
}

impl Stdio {
    pub(super) fn start(door: Door<'_>, inbox: Inbox) -> anyhow::Result<Self> {
        let args = [OsStr::new("stdio"), OsStr::new("-f"), door.manifest.as_os_str()];
        let log = OpenOptions::new().create(true).append(true).open(door.log)?;
        let (process, input, output) = Process::converse(built("toolyard")?, &args, log.into())?;
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).with_context(|| format!("no message: {line}"));
                if inbox.send(Heard { origin: Origin::Shared, message: message.map(Some) }).is_err() {
                    return;
                }
            }
        });
        Ok(Self { input, _process: process })
    }

    pub(super) fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).context("write to the gateway")
    }
}
