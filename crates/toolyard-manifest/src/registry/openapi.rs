//! The reader of a handler of the type `openapi`.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::{auth, headers, retry, scheme};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{HttpRetry, OpenApiHandler, OpenApiSpec, OperationFilter, RetryPolicy, SecretString},
    tree::NodeContent,
    value::{self, StringMode},
};

/// Default time between two reads of a description. Services change when they are deployed.
const DEFAULT_REFRESH: Duration = Duration::from_secs(5 * 60);

/// The methods of OpenAPI operations.
const METHOD: KeywordChoice<&str> = KeywordChoice {
    noun: "method of OpenAPI",
    words: &[
        ("GET", "GET"),
        ("PUT", "PUT"),
        ("POST", "POST"),
        ("DELETE", "DELETE"),
        ("OPTIONS", "OPTIONS"),
        ("HEAD", "HEAD"),
        ("PATCH", "PATCH"),
        ("TRACE", "TRACE"),
    ],
    unsupported: &[],
};

/// Reads the fields of a handler of the type `openapi`.
pub(super) fn handler(fields: &mut ObjectFields<'_>) -> Option<OpenApiHandler> {
    let config = fields.required("openAPIConfig", config);
    let auth =
        auth::handler_auth(fields, config.as_ref().and_then(|config| config.auth.clone()), "openAPIConfig");
    let retry: HttpRetry = retry::handler_retry(fields, None, "openAPIConfig");
    Some(OpenApiHandler { auth, retry, ..config? })
}

/// Reads `openAPIConfig`. The handler's own fields are added later.
fn config(cursor: ValueCursor<'_>) -> Option<OpenApiHandler> {
    let mut fields = cursor.fields()?;
    let spec = spec(&mut fields);
    let base_url = fields.optional("baseURL", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let operations =
        fields.with_default("operationFilter", |cursor| cursor.non_empty_list(ValueCursor::text), Vec::new());
    let filter = fields.with_default("filter", operation_filter, OperationFilter::default());
    let headers =
        fields.with_default("headers", |cursor| headers(cursor, formats::is_header_name), Vec::new());
    let auth = auth::config_auth(&mut fields);
    let credentials = |cursor: ValueCursor<'_>| cursor.entries(formats::any_name, scheme::credential);
    let credentials = fields.with_default("credentials", credentials, Vec::new());
    let variables = |cursor: ValueCursor<'_>| {
        cursor.entries(formats::any_name, |cursor| cursor.text().map(SecretString::new))
    };
    let server_variables = fields.with_default("serverVariables", variables, Vec::new());
    let refresh = fields.with_default("refresh", ValueCursor::duration, DEFAULT_REFRESH);
    fields.finish();
    Some(OpenApiHandler {
        spec: spec?,
        base_url,
        filter: OperationFilter { operations, ..filter },
        headers,
        auth,
        credentials,
        server_variables,
        refresh: (!refresh.is_zero()).then_some(refresh),
        retry: RetryPolicy::attempts(1).into(),
    })
}

/// Reads the location of the description, which has exactly one form.
fn spec(fields: &mut ObjectFields<'_>) -> Option<OpenApiSpec> {
    match fields.optional("spec", |cursor| Some(inline_spec(cursor))) {
        Some(inline) => {
            fields.reject_misplaced(&["specURL"], "`spec` already contains the description");
            inline.map(OpenApiSpec::Inline)
        }
        None => fields.required("specURL", spec_url),
    }
}

/// Reads a URL, or `file:` and a path.
fn spec_url(cursor: ValueCursor<'_>) -> Option<OpenApiSpec> {
    match cursor.clone().text()?.strip_prefix("file:") {
        Some(path) => auth::existing_file(&cursor, path).map(OpenApiSpec::File),
        None => cursor.parse_secret(formats::description_url).map(OpenApiSpec::Url),
    }
}

/// Reads an inline description without expanding references, because `${` may be part of it.
fn inline_spec(cursor: ValueCursor<'_>) -> Option<Value> {
    match cursor.content() {
        NodeContent::Text(text) if text.trim().is_empty() => {
            cursor.report(cursor.problem("this is empty").expected("a description, OpenAPI 2 or 3"));
            None
        }
        NodeContent::Text(text) => Some(Value::from(text.as_str())),
        NodeContent::Object(_) => value::object(cursor, StringMode::Literal).map(Value::Object),
        _ => {
            cursor.report_wrong_type("a description as an object, or its text", None);
            None
        }
    }
}

/// Reads the object `filter`. The filter by `operationId` is a separate field.
fn operation_filter(cursor: ValueCursor<'_>) -> Option<OperationFilter> {
    let method = |cursor: ValueCursor<'_>| Method::from_bytes(cursor.choice(&METHOD)?.as_bytes()).ok();
    let path = |cursor: ValueCursor<'_>| cursor.parse(formats::path_glob);
    let mut fields = cursor.fields()?;
    let filter = OperationFilter {
        operations: Vec::new(),
        tags: fields.with_default("tags", |cursor| cursor.non_empty_list(ValueCursor::text), Vec::new()),
        methods: fields.with_default("methods", |cursor| cursor.non_empty_list(method), Vec::new()),
        paths: fields.with_default("paths", |cursor| cursor.non_empty_list(path), Vec::new()),
    };
    fields.finish();
    Some(filter)
}
