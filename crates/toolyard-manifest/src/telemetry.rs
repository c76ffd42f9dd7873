//! The sections `telemetry` and `logs`.

use std::time::Duration;

use http::HeaderName;
use serde_json::{Value, json};

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    field_type::{CustomField, FieldType, FractionField, KeywordField, TextField, TimeoutField},
    formats::{self, EndpointUrl},
    handler::SecretString,
    object_schema::SchemaDefinitions,
    registry,
    section::{nested, section},
};

section! {
    /// `telemetry` of a `Toolyard` document: metrics and traces. Absent settings come from the standard environment
    /// variables of OpenTelemetry.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TelemetrySettings: Default = "telemetry" {
        /// Prefix of the names of the gateway's own metrics.
        pub prefix: String = "prefix",
            TextField::new(formats::metric_prefix).pattern("^[A-Za-z]([A-Za-z0-9_.]{0,62}[A-Za-z0-9_])?$"),
            default "toolyard".to_owned();
        /// OTLP collector of metrics and traces. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, `_PROTOCOL` and `_HEADERS`.
        pub otlp: Option<OtlpSettings> = "otlp", CustomField { read: otlp, schema: otlp_schema }, optional;
        /// Traces, which need a collector.
        pub sample: Option<f64> = "traces", CustomField { read: sample, schema: traces_schema }, optional;
    }
}

section! {
    /// A collector of metrics and traces with OTLP.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OtlpSettings = "otlp" {
        /// URL of the collector. With the protocol `http`, the part before `/v1/traces` and `/v1/metrics`.
        pub endpoint: EndpointUrl = "endpoint",
            TextField::new(EndpointUrl::parse).secret().pattern("^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]"),
            required;
        /// Protocol of the collector: `grpc`, commonly on port 4317, or `http`, on 4318.
        pub protocol: OtlpProtocol = "protocol", KeywordField(&PROTOCOL), default OtlpProtocol::Grpc;
        /// Headers of each request, such as credentials.
        pub headers: Vec<(HeaderName, SecretString)> = "headers",
            CustomField { read: headers, schema: headers_schema },
            described Vec::new();
        /// Time between two exports of metrics.
        ///
        /// As in the specification of OpenTelemetry.
        pub interval: Duration = "interval", TimeoutField, default Self::INTERVAL;
    }
}

impl OtlpSettings {
    /// Default time between two exports of metrics.
    pub const INTERVAL: Duration = Duration::from_secs(60);
}

section! {
    /// `traces`.
    struct TraceSettings = "traces" {
        /// Fraction of traces to keep, from 0 to 1, of those that start at the gateway. Others are kept if the client
        /// keeps them. Default: `OTEL_TRACES_SAMPLER`, or all.
        sample: Option<f64> = "sample", FractionField, optional;
    }
}

/// The protocol of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC, commonly on port 4317.
    Grpc,
    /// Protobuf in HTTP requests, commonly on port 4318.
    Http,
}

section! {
    /// `logs` of a `Toolyard` document: format and filter of the log.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LogSettings: Default = "logs" {
        /// Format of lines: text for people, or one JSON object per line.
        pub format: LogFormat = "format", KeywordField(&FORMAT), default LogFormat::Human;
        /// Log filter: levels, global or for the targets with a prefix, as in `info,toolyard_mcp=debug`. Edits apply
        /// immediately. At the start `TOOLYARD_LOG` takes precedence.
        pub filter: String = "filter", TextField::new(formats::log_filter).pattern(LOG_FILTER),
            default "info".to_owned();
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    Human,
    /// One JSON object per line, for programs.
    Json,
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

/// A regular expression for log filters.
const LOG_FILTER: &str = concat!(
    "^([A-Za-z0-9_:]+=)?(off|error|warn|info|debug|trace)",
    "(,([A-Za-z0-9_:]+=)?(off|error|warn|info|debug|trace))*$"
);

fn headers(cursor: ValueCursor<'_>) -> Option<Vec<(HeaderName, SecretString)>> {
    registry::headers(cursor, formats::is_header_name)
}

fn headers_schema(_: &mut SchemaDefinitions) -> Value {
    json!({
        "default": {},
        "type": "object",
        "propertyNames": {"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
        "additionalProperties": {"type": "string", "pattern": r"\$\{|^[ -~]*$"},
    })
}

fn otlp(cursor: ValueCursor<'_>) -> Option<OtlpSettings> {
    nested::<OtlpSettings>().read(cursor)
}

fn otlp_schema(definitions: &mut SchemaDefinitions) -> Value {
    nested::<OtlpSettings>().schema(definitions)
}

fn sample(cursor: ValueCursor<'_>) -> Option<f64> {
    nested::<TraceSettings>().read(cursor)?.sample
}

fn traces_schema(definitions: &mut SchemaDefinitions) -> Value {
    nested::<TraceSettings>().schema(definitions)
}
