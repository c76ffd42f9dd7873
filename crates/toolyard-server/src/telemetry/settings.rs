//! The collector, from the manifest or the environment.

use std::time::Duration;

use http::HeaderName;
use http::uri::Scheme;
use toolyard_manifest::{OtlpProtocol, OtlpSettings, SecretString, TelemetrySettings};

/// The reason why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// A variable of the environment is invalid. Its value is not repeated, because it may be secret.
    #[error("{variable} is not {expected}")]
    Variable {
        /// Name of the variable.
        variable: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// The exporter cannot be created.
    #[error("cannot export telemetry")]
    Exporter(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<opentelemetry_sdk::error::OTelSdkError> for TelemetryError {
    fn from(error: opentelemetry_sdk::error::OTelSdkError) -> Self {
        Self::Exporter(error.into())
    }
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";

/// The collector of telemetry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CollectorSettings {
    /// Its URL.
    pub(super) endpoint: String,
    /// OTLP transport.
    pub(super) protocol: OtlpProtocol,
    /// Headers of each request, beside those of `OTEL_EXPORTER_OTLP_HEADERS`.
    pub(super) headers: Vec<(HeaderName, SecretString)>,
    /// Interval of metric exports.
    pub(super) interval: Duration,
}

impl CollectorSettings {
    /// True if the endpoint uses TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.endpoint.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"))
    }
}

/// Returns the collector: from the manifest, else from the environment, else none.
pub(super) fn collector(
    telemetry: &TelemetrySettings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<CollectorSettings>, TelemetryError> {
    if let Some(OtlpSettings { endpoint, protocol, headers, interval }) = telemetry.otlp.clone() {
        return Ok(Some(CollectorSettings {
            endpoint: endpoint.uri().to_string(),
            protocol,
            headers,
            interval,
        }));
    }
    // An empty variable counts as unset (OpenTelemetry, "Environment Variable Specification").
    let variable = |name| environment(name).filter(|text| !text.is_empty());
    let Some(endpoint) = variable(ENDPOINT) else { return Ok(None) };
    let protocol = match variable(PROTOCOL).as_deref() {
        Some("grpc") => OtlpProtocol::Grpc,
        Some("http/protobuf") | None => OtlpProtocol::Http,
        Some(_) => {
            return Err(TelemetryError::Variable {
                variable: PROTOCOL,
                expected: "`grpc` or `http/protobuf`",
            });
        }
    };
    let interval = match variable(INTERVAL).map(|text| text.parse()) {
        Some(Ok(milliseconds)) if milliseconds > 0 => Duration::from_millis(milliseconds),
        Some(_) => {
            return Err(TelemetryError::Variable {
                variable: INTERVAL,
                expected: "a number of milliseconds",
            });
        }
        None => OtlpSettings::INTERVAL,
    };
    Ok(Some(CollectorSettings { endpoint: validated(endpoint)?, protocol, headers: Vec::new(), interval }))
}

fn validated(endpoint: String) -> Result<String, TelemetryError> {
    let invalid = TelemetryError::Variable {
        variable: ENDPOINT,
        expected: "a URL that begins with http:// or https://",
    };
    let Ok(uri) = endpoint.parse::<http::Uri>() else { return Err(invalid) };
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => Ok(endpoint),
        _ => Err(invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector_of(variables: &[(&str, &str)]) -> String {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        match collector(&TelemetrySettings::default(), &environment) {
            Ok(None) => "nowhere".to_owned(),
            Ok(Some(CollectorSettings { endpoint, protocol, interval, .. })) => {
                format!("{endpoint} {protocol:?} {interval:?}")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn collector_from_the_environment() {
        const URL: (&str, &str) = (ENDPOINT, "http://a:4318");
        let cases: [&[(&str, &str)]; 8] = [
            &[],
            &[(ENDPOINT, "")],
            &[(PROTOCOL, "grpc")],
            &[URL],
            &[URL, (PROTOCOL, "grpc"), (INTERVAL, "500")],
            &[URL, (PROTOCOL, "http/json")],
            &[(ENDPOINT, "a:4318")],
            &[URL, (INTERVAL, "0")],
        ];
        insta::assert_snapshot!(cases.map(collector_of).join("\n"), @"
        nowhere
        nowhere
        nowhere
        http://a:4318 Http 60s
        http://a:4318 Grpc 500ms
        OTEL_EXPORTER_OTLP_PROTOCOL is not `grpc` or `http/protobuf`
        OTEL_EXPORTER_OTLP_ENDPOINT is not a URL that begins with http:// or https://
        OTEL_METRIC_EXPORT_INTERVAL is not a number of milliseconds
        ");
    }
}
