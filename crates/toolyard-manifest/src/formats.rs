//! Formats of strings: names, durations, sizes, addresses.

mod broker;
mod builtins;
mod cpu;
mod duration;
mod function;
mod grpc;
mod header;
mod listen;
mod name;
mod openapi;
mod size;
mod telemetry;
mod template;
mod web;

use std::path::PathBuf;

use toolyard_core::access::CallPrice;

pub use self::{
    broker::{BrokerKind, BrokerUrl},
    listen::ListenAddress,
    name::HandlerName,
    template::UrlTemplate,
    web::EndpointUrl,
};
pub(crate) use self::{
    broker::{bus_name, bus_topic, message_type},
    builtins::{display_name, guide_name, model, pattern, summary, time_zone, webhook_secret},
    cpu::{CPU, cpu},
    duration::{DURATION, duration, duration_text},
    function::{function_id, function_pattern, function_version, platform_url},
    grpc::{binary_metadata, is_binary_metadata, is_metadata_name, service_glob},
    header::{
        header_name, header_value, is_header_name, is_mcp_header_name, secret_header_value, token,
        user_and_password,
    },
    listen::{LISTEN, network},
    name::{
        label_key, label_value, namespace, non_empty_name, port_name, published_name, registry_name,
        service_name, tool_name,
    },
    openapi::{client_id, description_url, path_glob, scheme_secret, scope},
    size::{SIZE, size, size_text},
    telemetry::{log_filter, metric_prefix},
    web::{
        api_base_url, cluster_key, host, host_and_port, host_pattern, http_origin, origin, postgres_url,
        trace_url,
    },
};
use crate::problem::{ManifestProblem, SourceLocation};

/// A string has the wrong format. The error does not quote the string, which may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not {noun}: expected {expected}")]
pub struct FormatError {
    noun: &'static str,
    expected: &'static str,
    hint: Option<&'static str>,
}

impl FormatError {
    pub(crate) const fn new(noun: &'static str, expected: &'static str) -> Self {
        Self { noun, expected, hint: None }
    }

    pub(crate) const fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// Converts the error to a problem; `shown` stands for the string in the message.
    pub(crate) fn problem(self, place: SourceLocation, shown: &str) -> ManifestProblem {
        let problem = ManifestProblem::new(place, format!("{shown} is not {}", self.noun));
        problem.expected(self.expected).maybe_hint(self.hint)
    }
}

/// A program to start.
pub(crate) fn command(text: &str) -> Result<String, FormatError> {
    non_empty(text, FormatError::new("a command", "the name or the path of a program"))
}

/// A folder of the file system, which need not exist yet.
pub(crate) fn folder(text: &str) -> Result<PathBuf, FormatError> {
    non_empty(text, FormatError::new("a folder", "the path of a folder")).map(PathBuf::from)
}

/// A file of the file system.
pub(crate) fn file(text: &str) -> Result<String, FormatError> {
    non_empty(text, FormatError::new("a file", "the path of a file"))
}

/// A path component that stays in its folder.
pub(crate) fn file_name(text: &str) -> Result<String, FormatError> {
    let invalid =
        FormatError::new("the name of a secret or of a key in it", "letters, digits, `-`, `_` and `.`");
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let valid = !text.is_empty() && !text.starts_with('.') && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// A number in a string: Kubernetes resources have no fractions.
pub(crate) fn multiplier(text: &str) -> Result<f64, FormatError> {
    let invalid = FormatError::new("a multiplier", "a number of 1 or more in quotes, such as '2.0'");
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 1.0);
    number.ok_or(invalid)
}

/// The price of a call. A string, as every fraction, so that it is exact.
pub(crate) fn price(text: &str) -> Result<CallPrice, FormatError> {
    text.parse().map_err(|_| {
        FormatError::new("a price", "a number with at most 6 decimals, in quotes, such as '0.25'")
    })
}

/// The name of an environment variable.
pub(crate) fn variable_name(text: &str) -> Result<(), FormatError> {
    let invalid =
        FormatError::new("the name of an environment variable", "at least one character, and no `=` or NUL");
    if text.is_empty() || text.contains(['=', '\0']) { Err(invalid) } else { Ok(()) }
}

/// Any name: of a label, which the gateway does not read, or one that a description defines.
pub(crate) fn any_name(_: &str) -> Result<(), FormatError> {
    Ok(())
}

fn non_empty(text: &str, invalid: FormatError) -> Result<String, FormatError> {
    if text.is_empty() { Err(invalid) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod testing {
    use super::FormatError;

    /// Asserts that a format accepts `valid` and rejects `invalid`.
    #[track_caller]
    pub(super) fn check<T>(form: fn(&str) -> Result<T, FormatError>, valid: &[&str], invalid: &[&str]) {
        for text in valid {
            assert!(form(text).is_ok(), "{text:?}");
        }
        for text in invalid {
            assert!(form(text).is_err(), "{text:?}");
        }
    }
}
