//! `toolyard stdio`, started by its client: a message per line.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::ChildStdin;

use anyhow::Context;
use serde_json::Value;
use xtask_support::builds::sibling_program;
use xtask_support::process::LaunchedProcess;

use super::GatewayAccess;
use super::link::{InboxMessage, LinkInbox, MessageOrigin};

pub(super) struct StdioLink {
    input: ChildStdin,
    _process: LaunchedProcess,
}

impl StdioLink {
    pub(super) fn start(access: GatewayAccess<'_>, inbox: LinkInbox) -> anyhow::Result<Self> {
        let args = [OsStr::new("stdio"), OsStr::new("-f"), access.manifest.as_os_str()];
        let log = OpenOptions::new().create(true).append(true).open(access.log)?;
        let (process, input, output) =
            LaunchedProcess::launch_with_pipes(sibling_program("toolyard")?, &args, log.into())?;
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).with_context(|| format!("invalid message: {line}"));
                if inbox
                    .send(InboxMessage { origin: MessageOrigin::Shared, message: message.map(Some) })
                    .is_err()
                {
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
