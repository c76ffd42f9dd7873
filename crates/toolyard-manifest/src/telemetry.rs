//! The reader of `telemetry` and `logs`.

use std::time::Duration;

use http::HeaderName;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    formats::{self, EndpointUrl},
    handler::SecretString,
    registry::headers,
};

/// `telemetry` of a `Toolyard` document: metrics and traces. Absent settings come from the standard environment
/// variables of OpenTelemetry.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetrySettings {
    /// `prefix`: the prefix of the gateway's own metrics. Default: `toolyard`.
    pub prefix: String,
    /// `otlp`: the collector of metrics and traces. `None`: that of the environment, if any.
    pub otlp: Option<OtlpSettings>,
    /// `traces.sample`: the fraction of traces to keep, of those that start here. `None`: as in the environment, or
    /// all.
    pub sample: Option<f64>,
}

/// A collector of metrics and traces with OTLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpSettings {
    /// `endpoint`: its URL. For HTTP, the part before `/v1/traces` and `/v1/metrics`.
    pub endpoint: EndpointUrl,
    /// `protocol`: the protocol of the collector. Default: gRPC.
    pub protocol: OtlpProtocol,
    /// `headers`: headers of each request.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// `interval`: time between two exports of metrics. Default: 60 s, as in the specification of OpenTelemetry.
    pub interval: Duration,
}

/// The protocol of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC, commonly on port 4317.
    Grpc,
    /// Protobuf in HTTP requests, commonly on port 4318.
    Http,
}

/// `logs` of a `Toolyard` document: format and filter of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `format`: the format of lines. Default: `human`.
    pub format: LogFormat,
    /// `filter`: the log filter, by level and target, as in `info,toolyard_mcp=debug`. Default: `info`. Edits apply
    /// immediately.
    pub filter: String,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    Human,
    /// One JSON object per line, for programs.
    Json,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self { prefix: "toolyard".to_owned(), otlp: None, sample: None }
    }
}

impl OtlpSettings {
    /// Default time between two exports of metrics.
    pub const INTERVAL: Duration = Duration::from_secs(60);
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { format: LogFormat::Human, filter: "info".to_owned() }
    }
}

const PROTOCOL: KeywordChoice<OtlpProtocol> = KeywordChoice {
    noun: "protocol",
    words: &[("grpc", OtlpProtocol::Grpc), ("http", OtlpProtocol::Http)],
    unsupported: &[],
};

const FORMAT: KeywordChoice<LogFormat> = KeywordChoice {
    noun: "format of the log",
    words: &[("human", LogFormat::Human), ("json", LogFormat::Json)],
    unsupported: &[],
};

pub(crate) fn telemetry(cursor: ValueCursor<'_>) -> Option<TelemetrySettings> {
    let mut fields = cursor.fields()?;
    let default = TelemetrySettings::default();
    let telemetry = TelemetrySettings {
        prefix: fields.with_default("prefix", |cursor| cursor.parse(formats::metric_prefix), default.prefix),
        otlp: fields.optional("otlp", otlp),
        sample: fields.optional("traces", sample),
    };
    fields.finish();
    Some(telemetry)
}

fn otlp(cursor: ValueCursor<'_>) -> Option<OtlpSettings> {
    let mut fields = cursor.fields()?;
    let endpoint = fields.required("endpoint", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let protocol = fields.with_default("protocol", |cursor| cursor.choice(&PROTOCOL), OtlpProtocol::Grpc);
    let headers =
        fields.with_default("headers", |cursor| headers(cursor, formats::is_header_name), Vec::new());
    let interval = fields.with_default("interval", ValueCursor::timeout, OtlpSettings::INTERVAL);
    fields.finish();
    Some(OtlpSettings { endpoint: endpoint?, protocol, headers, interval })
}

fn sample(cursor: ValueCursor<'_>) -> Option<f64> {
    let mut fields = cursor.fields()?;
    let sample = fields.optional("sample", ValueCursor::share);
    fields.finish();
    sample
}

pub(crate) fn logs(cursor: ValueCursor<'_>) -> Option<LogSettings> {
    let mut fields = cursor.fields()?;
    let default = LogSettings::default();
    let logs = LogSettings {
        format: fields.with_default("format", |cursor| cursor.choice(&FORMAT), default.format),
        filter: fields.with_default("filter", |cursor| cursor.parse(formats::log_filter), default.filter),
    };
    fields.finish();
    Some(logs)
}
