//! What the gateway tells those who run it: metrics, traces and logs.

use std::time::Duration;

use http::HeaderName;

use crate::{
    cursor::{Choice, Cursor},
    forms::{self, Endpoint},
    handler::Secret,
    registry::headers,
};

/// Metrics and traces: `telemetry` of the `Toolyard` document. What it leaves open, the variables of the environment say
/// that all software with OpenTelemetry reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// `prefix`: what the names of our own metrics begin with. `toolyard`.
    pub prefix: String,
    /// `otlp`: where metrics and traces are sent. None: nowhere, unless the environment says so.
    pub otlp: Option<Otlp>,
    /// `traces.sample`: the share of traces that is kept, of those that begin here. None: as the environment says, or all.
    pub sample: Option<f64>,
}

/// A collector that takes metrics and traces by OTLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// `endpoint`: its URL. For HTTP, what stands before `/v1/traces` and `/v1/metrics`.
    pub endpoint: Endpoint,
    /// `protocol`: how it is spoken to. gRPC.
    pub protocol: OtlpProtocol,
    /// `headers`: what each request carries.
    pub headers: Vec<(HeaderName, Secret)>,
    /// `interval`: how often metrics are sent. 60 s: what the specification of OpenTelemetry has.
    pub interval: Duration,
}

/// How a collector is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC, commonly on port 4317.
    Grpc,
    /// Protobuf in HTTP requests, commonly on port 4318.
    Http,
}

/// What is logged: `logs` of the `Toolyard` document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// `format`: how lines look. For humans.
    pub format: LogFormat,
    /// `filter`: what is logged, by level and by target, as in `info,toolyard_mcp=debug`. `info`. An edit of it is applied
    /// at once.
    pub filter: String,
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people who read them.
    Human,
    /// One JSON object a line, for programs.
    Json,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { prefix: "toolyard".to_owned(), otlp: None, sample: None }
    }
}

impl Otlp {
    /// How often metrics are sent where nothing else is said.
    pub const INTERVAL: Duration = Duration::from_secs(60);
}

impl Default for Logs {
    fn default() -> Self {
        Self { format: LogFormat::Human, filter: "info".to_owned() }
    }
}

const PROTOCOL: Choice<OtlpProtocol> = Choice {
    noun: "protocol",
    words: &[("grpc", OtlpProtocol::Grpc), ("http", OtlpProtocol::Http)],
    not_yet: &[],
};

const FORMAT: Choice<LogFormat> = Choice {
    noun: "format of the log",
    words: &[("human", LogFormat::Human), ("json", LogFormat::Json)],
    not_yet: &[],
};

pub(crate) fn telemetry(cursor: Cursor<'_>) -> Option<Telemetry> {
    let mut fields = cursor.fields()?;
    let default = Telemetry::default();
    let telemetry = Telemetry {
        prefix: fields.with_default("prefix", |cursor| cursor.parse(forms::metric_prefix), default.prefix),
        otlp: fields.optional("otlp", otlp),
        sample: fields.optional("traces", sample),
    };
    fields.finish();
    Some(telemetry)
}

fn otlp(cursor: Cursor<'_>) -> Option<Otlp> {
    let mut fields = cursor.fields()?;
    let endpoint = fields.required("endpoint", |cursor| cursor.parse_secret(Endpoint::parse));
    let protocol = fields.with_default("protocol", |cursor| cursor.choice(&PROTOCOL), OtlpProtocol::Grpc);
    let headers = fields.with_default("headers", |cursor| headers(cursor, forms::is_header_name), Vec::new());
    let interval = fields.with_default("interval", Cursor::timeout, Otlp::INTERVAL);
    fields.finish();
    Some(Otlp { endpoint: endpoint?, protocol, headers, interval })
}

fn sample(cursor: Cursor<'_>) -> Option<f64> {
    let mut fields = cursor.fields()?;
    let sample = fields.optional("sample", Cursor::share);
    fields.finish();
    sample
}

pub(crate) fn logs(cursor: Cursor<'_>) -> Option<Logs> {
    let mut fields = cursor.fields()?;
    let default = Logs::default();
    let logs = Logs {
        format: fields.with_default("format", |cursor| cursor.choice(&FORMAT), default.format),
        filter: fields.with_default("filter", |cursor| cursor.parse(forms::log_filter), default.filter),
    };
    fields.finish();
    Some(logs)
}
