//! The readers of handlers of the types `function` and `cortexone`.

use super::{auth, retry, tool};
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{CortexOneHandler, CredentialSource, FunctionHandler, FunctionSource},
};

/// The default platform.
const DEFAULT_PLATFORM_URL: &str = "https://cortexconnect.rival.io";

/// Reads the fields of a handler of the type `function`.
pub(super) fn hosted_function(fields: &mut ObjectFields<'_>) -> Option<FunctionHandler> {
    let source = fields.required("functionConfig", source);
    let tool = fields.optional("tool", |cursor| Some(tool::read(cursor)));
    let retry = retry::handler_retry(fields, None, "functionConfig");
    fields.reject_misplaced(&["auth"], "hosted functions need no authentication");
    Some(FunctionHandler { source: source?, tool: unless_invalid(tool)?, retry })
}

/// Reads the fields of a handler of the type `cortexone`.
pub(super) fn platform_function(fields: &mut ObjectFields<'_>) -> Option<CortexOneHandler> {
    let config = fields.required("cortexoneConfig", config);
    let tool = fields.optional("tool", |cursor| Some(tool::read(cursor)));
    let retry = retry::handler_retry(fields, None, "cortexoneConfig");
    fields.reject_misplaced(&["auth"], "`cortexoneConfig.apiKey` already authenticates calls");
    let CortexOneConfig { id, version, base_url, api_key } = config?;
    Some(CortexOneHandler { id, version, base_url, api_key, tool: unless_invalid(tool)?, retry })
}

/// Returns `None` for a present but invalid value; an absent value is valid.
fn unless_invalid<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
        None => Some(None),
    }
}

fn source(cursor: ValueCursor<'_>) -> Option<FunctionSource> {
    let mut fields = cursor.fields()?;
    let path = |cursor: ValueCursor<'_>| {
        let path = cursor.clone().parse(formats::folder)?;
        Some(cursor.resolve_path(path.to_str()?))
    };
    let source = match fields.optional("path", |cursor| Some(path(cursor))) {
        Some(path) => {
            fields.reject_misplaced(&["id", "version"], "`path` already selects the code");
            path.map(FunctionSource::Folder)
        }
        None => published_source(&mut fields),
    };
    fields.finish();
    source
}

fn published_source(fields: &mut ObjectFields<'_>) -> Option<FunctionSource> {
    let id = fields.required("id", |cursor| cursor.parse(formats::function_id));
    let version = |cursor: ValueCursor<'_>| cursor.parse(formats::function_version);
    let version = fields.with_default("version", version, "latest".to_owned());
    Some(FunctionSource::Published { id: id?, version })
}

/// The content of `cortexoneConfig`.
struct CortexOneConfig {
    id: String,
    version: String,
    base_url: EndpointUrl,
    api_key: CredentialSource,
}

fn config(cursor: ValueCursor<'_>) -> Option<CortexOneConfig> {
    let mut fields = cursor.fields()?;
    let id = fields.required("id", |cursor| cursor.parse(formats::function_id));
    let version = fields.required("version", |cursor| cursor.parse(formats::function_version));
    let base_url = fields.optional("baseURL", |cursor| Some(cursor.parse_secret(formats::platform_url)));
    let base_url = base_url.unwrap_or_else(|| EndpointUrl::parse(DEFAULT_PLATFORM_URL).ok());
    let api_key = auth::secret(&mut fields, "apiKey", "apiKeySecretRef", formats::token);
    fields.finish();
    Some(CortexOneConfig { id: id?, version: version?, base_url: base_url?, api_key: api_key? })
}
