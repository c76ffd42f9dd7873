//! What the manifest and the environment say together about where telemetry is sent.

use std::time::Duration;

use http::HeaderName;
use http::uri::Scheme;
use toolyard_manifest::{Otlp, OtlpProtocol, Secret, Telemetry};

/// Why there is no telemetry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable of the environment says something that it cannot say. The value is not repeated: it may hold a secret.
    #[error("{variable} is not {expected}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// The exporter cannot be made.
    #[error("cannot send telemetry")]
    Exporter(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// This program can send nothing.
    #[error("this program was built without OTLP (the feature `otlp`), and cannot send telemetry")]
    NotBuiltIn,
}

impl From<opentelemetry_sdk::error::OTelSdkError> for Error {
    fn from(error: opentelemetry_sdk::error::OTelSdkError) -> Self {
        Self::Exporter(error.into())
    }
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";

/// Where telemetry is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "it is only looked for"))]
pub(super) struct Collector {
    /// Its URL.
    pub(super) endpoint: String,
    /// How it is spoken to.
    pub(super) protocol: OtlpProtocol,
    /// What each request carries, beside what `OTEL_EXPORTER_OTLP_HEADERS` says.
    pub(super) headers: Vec<(HeaderName, Secret)>,
    /// How often metrics are sent.
    pub(super) interval: Duration,
}

#[cfg(feature = "otlp")]
impl Collector {
    /// Whether it is spoken to over TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.endpoint.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"))
    }
}

/// Where telemetry is sent: as the manifest says, else as the environment does, else nowhere.
pub(super) fn collector(
    telemetry: &Telemetry,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Collector>, Error> {
    if let Some(Otlp { endpoint, protocol, headers, interval }) = telemetry.otlp.clone() {
        return Ok(Some(Collector { endpoint: endpoint.uri().to_string(), protocol, headers, interval }));
    }
    // An empty variable is one that is not set (OpenTelemetry, "Environment Variable Specification").
    let variable = |name| environment(name).filter(|text| !text.is_empty());
    let Some(endpoint) = variable(ENDPOINT) else { return Ok(None) };
    let protocol = match variable(PROTOCOL).as_deref() {
        Some("grpc") => OtlpProtocol::Grpc,
        Some("http/protobuf") | None => OtlpProtocol::Http,
        Some(_) => return Err(Error::Variable { variable: PROTOCOL, expected: "`grpc` or `http/protobuf`" }),
    };
    let interval = match variable(INTERVAL).map(|text| text.parse()) {
        Some(Ok(milliseconds)) if milliseconds > 0 => Duration::from_millis(milliseconds),
        Some(_) => return Err(Error::Variable { variable: INTERVAL, expected: "a number of milliseconds" }),
        None => Otlp::INTERVAL,
    };
    Ok(Some(Collector { endpoint: checked(endpoint)?, protocol, headers: Vec::new(), interval }))
}

fn checked(endpoint: String) -> Result<String, Error> {
    let invalid =
        Error::Variable { variable: ENDPOINT, expected: "a URL that begins with http:// or https://" };
    let Ok(uri) = endpoint.parse::<http::Uri>() else { return Err(invalid) };
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => Ok(endpoint),
        _ => Err(invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_by(variables: &[(&str, &str)]) -> String {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        match collector(&Telemetry::default(), &environment) {
            Ok(None) => "nowhere".to_owned(),
            Ok(Some(Collector { endpoint, protocol, interval, .. })) => {
                format!("{endpoint} {protocol:?} {interval:?}")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_the_environment_says() {
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
        insta::assert_snapshot!(cases.map(said_by).join("\n"), @"
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
