//! Strings that have a form: names, durations, sizes, places.

mod builtins;
mod cpu;
mod duration;
mod function;
mod header;
mod listen;
mod name;
mod openapi;
mod size;
mod telemetry;
mod template;
mod web;

use std::path::PathBuf;

use toolyard_core::access::Price;

pub(crate) use self::{
    builtins::{display_name, guide_name, model, pattern, summary},
    cpu::{CPU, cpu},
    duration::{DURATION, duration},
    function::{function_id, function_version, platform_url},
    header::{
        header_name, header_value, is_header_name, is_mcp_header_name, secret_header_value, token,
        user_and_password,
    },
    listen::{LISTEN, network},
    name::{namespace, published_name, registry_name, service_name, some_name, tool_name},
    openapi::{client_id, description_url, path_glob, scheme_secret, scope},
    size::{SIZE, size},
    telemetry::{log_filter, metric_prefix},
    web::{cluster_key, host, host_and_port, host_pattern, http_origin, origin, postgres_url},
};
pub use self::{listen::Listen, name::HandlerName, template::UrlTemplate, web::Endpoint};
use crate::problem::{Place, Problem};

/// A string does not have the form it should have. It does not repeat the string, which may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not {noun}: expected {expected}")]
pub struct Invalid {
    noun: &'static str,
    expected: &'static str,
    hint: Option<&'static str>,
}

impl Invalid {
    const fn new(noun: &'static str, expected: &'static str) -> Self {
        Self { noun, expected, hint: None }
    }

    const fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// The problem for a message; `shown` is what the message calls the string.
    pub(crate) fn problem(self, place: Place, shown: &str) -> Problem {
        let problem = Problem::new(place, format!("{shown} is not {}", self.noun));
        problem.expected(self.expected).maybe_hint(self.hint)
    }
}

/// A program to start.
pub(crate) fn command(text: &str) -> Result<String, Invalid> {
    non_empty(text, Invalid::new("a command", "the name or the path of a program"))
}

/// A folder of the file system. Whether it exists is seen when it is used.
pub(crate) fn folder(text: &str) -> Result<PathBuf, Invalid> {
    non_empty(text, Invalid::new("a folder", "the path of a folder")).map(PathBuf::from)
}

/// A file of the file system.
pub(crate) fn file(text: &str) -> Result<String, Invalid> {
    non_empty(text, Invalid::new("a file", "the path of a file"))
}

/// A part of a path, which stays below the folder that it is put in.
pub(crate) fn file_name(text: &str) -> Result<String, Invalid> {
    let invalid = Invalid::new("the name of a secret or of a key in it", "letters, digits, `-`, `_` and `.`");
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let valid = !text.is_empty() && !text.starts_with('.') && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// A number that is written as a string, because Kubernetes has no other way to write a fraction.
pub(crate) fn multiplier(text: &str) -> Result<f64, Invalid> {
    let invalid = Invalid::new("a multiplier", "a number of 1 or more in quotes, such as '2.0'");
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 1.0);
    number.ok_or(invalid)
}

/// What a call costs. In quotes like every fraction, so that it is exact.
pub(crate) fn price(text: &str) -> Result<Price, Invalid> {
    text.parse()
        .map_err(|_| Invalid::new("a price", "a number with at most 6 decimals, in quotes, such as '0.25'"))
}

/// The name of a variable in the environment of a process.
pub(crate) fn variable_name(text: &str) -> Result<(), Invalid> {
    let invalid =
        Invalid::new("the name of an environment variable", "at least one character, and no `=` or NUL");
    if text.is_empty() || text.contains(['=', '\0']) { Err(invalid) } else { Ok(()) }
}

/// Any name: that of a label, which we do not read, or one that a description has.
pub(crate) fn any_name(_: &str) -> Result<(), Invalid> {
    Ok(())
}

fn non_empty(text: &str, invalid: Invalid) -> Result<String, Invalid> {
    if text.is_empty() { Err(invalid) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod testing {
    use super::Invalid;

    /// Which texts have a form, and which do not.
    #[track_caller]
    pub(super) fn check<T>(form: fn(&str) -> Result<T, Invalid>, valid: &[&str], invalid: &[&str]) {
        for text in valid {
            assert!(form(text).is_ok(), "{text:?}");
        }
        for text in invalid {
            assert!(form(text).is_err(), "{text:?}");
        }
    }
}
