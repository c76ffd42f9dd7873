//! The reader of a handler of the type `openapi`.

use super::{auth, headers, retry};
use crate::{
    cursor::Cursor,
    fields::Fields,
    forms::{self, Endpoint},
    handler::{HttpRetry, OpenApiHandler, RetryPolicy},
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
    let url = |cursor: Cursor<'_>| cursor.parse_secret(Endpoint::parse);
    let mut fields = cursor.fields()?;
    let spec_url = fields.required("specURL", url);
    let base_url = fields.optional("baseURL", url);
    let operation_filter = fields.optional("operationFilter", |cursor| cursor.non_empty_list(Cursor::text));
    let headers = fields.with_default("headers", |cursor| headers(cursor, forms::is_header_name), Vec::new());
    let auth = auth::configured(&mut fields);
    fields.finish();
    let retry = RetryPolicy::attempts(1).into();
    Some(OpenApiHandler { spec_url: spec_url?, base_url, operation_filter, headers, auth, retry })
}
