//! The reader of `functions`.

use std::time::Duration;

use crate::{cursor::Cursor, forms, handler::Secret};

/// `functions` of a `Toolyard` document: how hosted functions run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionHosting {
    /// `lend`: variables that functions may have, where their authors write `${NAME}` in their environment. Nothing else of
    /// the gateway's environment reaches them.
    pub lend: Vec<(String, Secret)>,
    /// `workers`: processes that run functions, of all of them together. 64: each takes some MB while it waits.
    pub workers: usize,
    /// `queuedCalls`: calls that wait for one of a version's turns; more are refused as overload. 256.
    pub queued_calls: usize,
    /// `idle`: how long a process stays without a call. 5 min.
    pub idle: Duration,
    /// `callsPerWorker`: calls after which a process is replaced, so that what Python code gathers goes. 1000.
    pub calls_per_worker: usize,
    /// `hostNetwork`: whether functions in Python that ask for the network have this machine's, with what listens on its
    /// loopback, such as this gateway. False: they are refused. `fetch` in JavaScript and Lua never needs it.
    pub host_network: bool,
    /// `queuedLogs`: entries of the log of functions that wait to be written; more are lost, and counted. 10 000.
    pub queued_logs: usize,
    /// `logRetention`: how long the log of a function is kept; `0s` for ever. 30 days.
    pub log_retention: Duration,
}

impl Default for FunctionHosting {
    fn default() -> Self {
        Self {
            lend: Vec::new(),
            workers: 64,
            queued_calls: 256,
            idle: Duration::from_secs(5 * 60),
            calls_per_worker: 1000,
            host_network: false,
            queued_logs: 10_000,
            log_retention: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

pub(super) fn functions(cursor: Cursor<'_>) -> Option<FunctionHosting> {
    let mut fields = cursor.fields()?;
    let default = FunctionHosting::default();
    let hosting = FunctionHosting {
        lend: fields.with_default("lend", lend, default.lend),
        workers: fields.with_default("workers", Cursor::count, default.workers),
        queued_calls: fields.with_default("queuedCalls", Cursor::count, default.queued_calls),
        idle: fields.with_default("idle", Cursor::timeout, default.idle),
        calls_per_worker: fields.with_default("callsPerWorker", Cursor::count, default.calls_per_worker),
        host_network: fields.with_default("hostNetwork", Cursor::flag, default.host_network),
        queued_logs: fields.with_default("queuedLogs", Cursor::count, default.queued_logs),
        log_retention: fields.with_default("logRetention", Cursor::duration, default.log_retention),
    };
    fields.finish();
    Some(hosting)
}

fn lend(cursor: Cursor<'_>) -> Option<Vec<(String, Secret)>> {
    cursor.entries(forms::variable_name, Cursor::secret)
}
