//! Query parameters. Unknown, duplicate and invalid ones are refused.

use std::collections::BTreeMap;
use std::time::SystemTime;

use axum::extract::FromRequestParts;
use http::Uri;
use http::request::Parts;
use toolyard_core::timestamp;

use super::ProblemDetails;

/// The query parameters of a route.
pub(super) struct Query<T>(pub(super) T);

/// The query of a route without parameters.
pub(super) type NoQuery = Query<()>;

/// Named query parameters, all of them optional.
pub(super) trait QueryParams: Sized {
    /// Names of the parameters.
    const NAMES: &'static [&'static str];

    /// Parses the values of the parameters.
    fn parse(values: QueryValues) -> Result<Self, ProblemDetails>;
}

impl QueryParams for () {
    const NAMES: &'static [&'static str] = &[];

    fn parse(_values: QueryValues) -> Result<Self, ProblemDetails> {
        Ok(())
    }
}

impl<T: QueryParams> Query<T> {
    /// Parses the query of a URI.
    pub(super) fn parse(uri: &Uri) -> Result<Self, ProblemDetails> {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            let parameter = T::NAMES.iter().find(|parameter| **parameter == name).ok_or_else(|| {
                let names = T::NAMES.join(", ");
                ProblemDetails::bad_request(format!(
                    "unknown query parameter `{name}`; known parameters: {names}"
                ))
            })?;
            if values.insert(*parameter, value.into_owned()).is_some() {
                return Err(ProblemDetails::bad_request(format!("duplicate query parameter `{name}`")));
            }
        }
        T::parse(QueryValues(values)).map(Self)
    }
}

impl<T: QueryParams, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ProblemDetails> {
        Self::parse(&parts.uri)
    }
}

/// The values of a query, by name.
pub(super) struct QueryValues(BTreeMap<&'static str, String>);

impl QueryValues {
    /// Takes a text.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Takes a time.
    pub(super) fn time(&mut self, name: &str) -> Result<Option<SystemTime>, ProblemDetails> {
        self.parsed(name, "a time such as 2026-11-21T08:30:00Z", timestamp::parse)
    }

    /// Takes a number from 1 to `max`.
    pub(super) fn number(&mut self, name: &str, max: u64) -> Result<Option<u64>, ProblemDetails> {
        let parse = |text: &str| text.parse().ok().filter(|number| (1..=max).contains(number));
        self.parsed(name, &format!("a number from 1 to {max}"), parse)
    }

    /// Takes the value of a parameter whose valid values `expected` describes.
    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ProblemDetails> {
        let invalid = || ProblemDetails::bad_request(format!("invalid `{name}`: expected {expected}"));
        self.0.remove(name).map(|text| parse(&text).ok_or_else(invalid)).transpose()
    }
}
