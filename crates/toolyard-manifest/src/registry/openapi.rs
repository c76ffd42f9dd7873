//! The reader of a handler of the type `openapi`.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::{auth, headers, retry, scheme};
use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms::{self, Endpoint},
    handler::{HttpRetry, OpenApiHandler, OpenApiSpec, OperationFilter, RetryPolicy, Secret},
    tree::Content,
    value::{self, Strings},
};

/// How often a description is read again of which nothing is said. Services change when they are deployed.
const DEFAULT_REFRESH: Duration = Duration::from_secs(5 * 60);

/// The methods that OpenAPI has operations for.
const METHOD: Choice<&str> = Choice {
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
    not_yet: &[],
};

/// What a handler's fields say that has the type `openapi`.
pub(super) fn handler(fields: &mut Fields<'_>) -> Option<OpenApiHandler> {
    let config = fields.required("openAPIConfig", config);
    let auth =
        auth::of_handler(fields, config.as_ref().and_then(|config| config.auth.clone()), "openAPIConfig");
    let retry: HttpRetry = retry::of_handler(fields, None, "openAPIConfig");
    Some(OpenApiHandler { auth, retry, ..config? })
}

/// What `openAPIConfig` says. The rest stands beside it.
fn config(cursor: Cursor<'_>) -> Option<OpenApiHandler> {
    let mut fields = cursor.fields()?;
    let spec = spec(&mut fields);
    let base_url = fields.optional("baseURL", |cursor| cursor.parse_secret(Endpoint::parse));
    let operations =
        fields.with_default("operationFilter", |cursor| cursor.non_empty_list(Cursor::text), Vec::new());
    let filter = fields.with_default("filter", filter, OperationFilter::default());
    let headers = fields.with_default("headers", |cursor| headers(cursor, forms::is_header_name), Vec::new());
    let auth = auth::configured(&mut fields);
    let credentials = |cursor: Cursor<'_>| cursor.entries(forms::any_name, scheme::credential);
    let credentials = fields.with_default("credentials", credentials, Vec::new());
    let variables =
        |cursor: Cursor<'_>| cursor.entries(forms::any_name, |cursor| cursor.text().map(Secret::new));
    let server_variables = fields.with_default("serverVariables", variables, Vec::new());
    let refresh = fields.with_default("refresh", Cursor::duration, DEFAULT_REFRESH);
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

/// Where the description is, which is said in one way.
fn spec(fields: &mut Fields<'_>) -> Option<OpenApiSpec> {
    match fields.optional("spec", |cursor| Some(inline(cursor))) {
        Some(inline) => {
            fields.misplaced(&["specURL"], "`spec` is the description already");
            inline.map(OpenApiSpec::Inline)
        }
        None => fields.required("specURL", place),
    }
}

/// A URL, or `file:` and a path.
fn place(cursor: Cursor<'_>) -> Option<OpenApiSpec> {
    match cursor.clone().text()?.strip_prefix("file:") {
        Some(path) => auth::file(&cursor, path).map(OpenApiSpec::File),
        None => cursor.parse_secret(forms::description_url).map(OpenApiSpec::Url),
    }
}

/// The description itself: as the author wrote it, since `${` may stand for itself in it.
fn inline(cursor: Cursor<'_>) -> Option<Value> {
    match cursor.content() {
        Content::Text(text) if text.trim().is_empty() => {
            cursor.report(cursor.problem("this is empty").expected("a description, OpenAPI 2 or 3"));
            None
        }
        Content::Text(text) => Some(Value::from(text.as_str())),
        Content::Object(_) => value::object(cursor, Strings::Literal).map(Value::Object),
        _ => {
            cursor.wrong_kind("a description as an object, or its text", None);
            None
        }
    }
}

/// The object `filter`. The filter by `operationId` stands beside it.
fn filter(cursor: Cursor<'_>) -> Option<OperationFilter> {
    let method = |cursor: Cursor<'_>| Method::from_bytes(cursor.choice(&METHOD)?.as_bytes()).ok();
    let path = |cursor: Cursor<'_>| cursor.parse(forms::path_glob);
    let mut fields = cursor.fields()?;
    let filter = OperationFilter {
        operations: Vec::new(),
        tags: fields.with_default("tags", |cursor| cursor.non_empty_list(Cursor::text), Vec::new()),
        methods: fields.with_default("methods", |cursor| cursor.non_empty_list(method), Vec::new()),
        paths: fields.with_default("paths", |cursor| cursor.non_empty_list(path), Vec::new()),
    };
    fields.finish();
    Some(filter)
}
