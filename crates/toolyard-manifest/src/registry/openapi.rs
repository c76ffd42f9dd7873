//! The reader of a handler of the type `openapi`.

use super::{auth, http, retry};
use crate::{
    cursor::Cursor,
    fields::Fields,
    forms::Endpoint,
    handler::{OpenApiHandler, RetryPolicy},
};

/// What a handler's fields say that has the type `openapi`.
pub(super) fn handler(fields: &mut Fields<'_>) -> Option<OpenApiHandler> {
    let config = fields.required("openAPIConfig", config);
    let auth =
        auth::of_handler(fields, config.as_ref().and_then(|config| config.auth.clone()), "openAPIConfig");
    let retry: RetryPolicy = retry::of_handler(fields, None, "openAPIConfig");
    Some(OpenApiHandler { auth, retry, ..config? })
}

/// What `openAPIConfig` says. The rest stands beside it.
fn config(cursor: Cursor<'_>) -> Option<OpenApiHandler> {
    let url = |cursor: Cursor<'_>| cursor.parse_secret(Endpoint::parse);
    let mut fields = cursor.fields()?;
    let spec_url = fields.required("specURL", url);
    let base_url = fields.optional("baseURL", url);
    let operation_filter = fields.optional("operationFilter", |cursor| cursor.non_empty_list(Cursor::text));
    let headers = fields.with_default("headers", http::headers, Vec::new());
    let auth = auth::configured(&mut fields);
    fields.finish();
    let retry = RetryPolicy::attempts(1);
    Some(OpenApiHandler { spec_url: spec_url?, base_url, operation_filter, headers, auth, retry })
}
