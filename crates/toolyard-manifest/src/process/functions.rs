//! The reader of `functions`.

use std::time::Duration;

use toolyard_core::access::ScopePattern;

use crate::{cursor::ValueCursor, formats, handler::SecretString};

/// `functions` of a `Toolyard` document: the hosting of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionHosting {
    /// `lend`: variables for functions, by the name that functions use as `${NAME}` in their environment. Functions see
    /// nothing else of the gateway's environment.
    pub lend: Vec<(String, VariableGrant)>,
    /// `workers`: maximum number of worker processes for all functions. Default: 64: each takes some MB while idle.
    pub workers: usize,
    /// `queuedCalls`: maximum number of waiting calls per version; more are refused as overload. Default: 256.
    pub queued_calls: usize,
    /// `idle`: lifetime of a worker process without calls. Default: 5 min.
    pub idle: Duration,
    /// `callsPerWorker`: calls after which a worker process is replaced, to free what Python code accumulates. Default:
    /// 1000.
    pub calls_per_worker: usize,
    /// `hostNetwork`: give Python functions that request network access the network of this machine, including services
    /// on its loopback interface such as this gateway. Default: false: such functions are refused. `fetch` in
    /// JavaScript and Lua never needs it.
    pub host_network: bool,
    /// `queuedLogs`: maximum number of log entries of functions that wait to be written; more are dropped and counted.
    /// Default: 10 000.
    pub queued_logs: usize,
    /// `logRetention`: lifetime of function logs; `0s` keeps them forever. Default: 30 days.
    pub log_retention: Duration,
}

/// An entry of `lend`: a variable, and the functions that may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableGrant {
    /// `value`: its value, which may be secret.
    pub value: SecretString,
    /// `functions`: patterns of function ids, with `*` for any characters. No other function gets the value.
    pub functions: Vec<ScopePattern>,
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

pub(super) fn functions(cursor: ValueCursor<'_>) -> Option<FunctionHosting> {
    let mut fields = cursor.fields()?;
    let default = FunctionHosting::default();
    let hosting = FunctionHosting {
        lend: fields.with_default("lend", lend, default.lend),
        workers: fields.with_default("workers", ValueCursor::count, default.workers),
        queued_calls: fields.with_default("queuedCalls", ValueCursor::count, default.queued_calls),
        idle: fields.with_default("idle", ValueCursor::timeout, default.idle),
        calls_per_worker: fields.with_default("callsPerWorker", ValueCursor::count, default.calls_per_worker),
        host_network: fields.with_default("hostNetwork", ValueCursor::flag, default.host_network),
        queued_logs: fields.with_default("queuedLogs", ValueCursor::count, default.queued_logs),
        log_retention: fields.with_default("logRetention", ValueCursor::duration, default.log_retention),
    };
    fields.finish();
    Some(hosting)
}

fn lend(cursor: ValueCursor<'_>) -> Option<Vec<(String, VariableGrant)>> {
    cursor.entries(formats::variable_name, variable_grant)
}

fn variable_grant(cursor: ValueCursor<'_>) -> Option<VariableGrant> {
    const HINT: &str = "list the functions that may use the variable: `{value: \"${NAME}\", functions: [weather, \"geo-*\"]}`";
    if cursor.is_text() {
        cursor.report_wrong_type("an object", Some(HINT));
        return None;
    }
    let mut fields = cursor.fields()?;
    let value = fields.required("value", ValueCursor::secret);
    let pattern = |cursor: ValueCursor<'_>| cursor.parse(formats::function_pattern);
    let functions = fields.required("functions", |cursor| cursor.non_empty_list(pattern));
    fields.finish();
    Some(VariableGrant { value: value?, functions: functions? })
}
