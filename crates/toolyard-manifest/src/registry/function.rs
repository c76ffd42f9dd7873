//! The readers of handlers of the types `function` and `cortexone`.

use super::{auth, retry, tool};
use crate::{
    cursor::Cursor,
    fields::Fields,
    forms::{self, Endpoint},
    handler::{CortexOneHandler, Credential, FunctionHandler, FunctionSource},
};

/// Where the platform is.
const PLATFORM: &str = "https://cortexconnect.rival.io";

/// What a handler's fields say that has the type `function`.
pub(super) fn hosted(fields: &mut Fields<'_>) -> Option<FunctionHandler> {
    let source = fields.required("functionConfig", source);
    let tool = fields.optional("tool", |cursor| Some(tool::read(cursor)));
    let retry = retry::of_handler(fields, None, "functionConfig");
    fields.misplaced(&["auth"], "a function of this gateway is called by nobody else");
    Some(FunctionHandler { source: source?, tool: whole(tool)?, retry })
}

/// What a handler's fields say that has the type `cortexone`.
pub(super) fn on_platform(fields: &mut Fields<'_>) -> Option<CortexOneHandler> {
    let config = fields.required("cortexoneConfig", config);
    let tool = fields.optional("tool", |cursor| Some(tool::read(cursor)));
    let retry = retry::of_handler(fields, None, "cortexoneConfig");
    fields.misplaced(&["auth"], "`cortexoneConfig.apiKey` says who is calling");
    let Config { id, version, base_url, api_key } = config?;
    Some(CortexOneHandler { id, version, base_url, api_key, tool: whole(tool)?, retry })
}

/// A tool that is there and wrong makes a handler that is wrong; one that is absent does not.
fn whole<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
        None => Some(None),
    }
}

fn source(cursor: Cursor<'_>) -> Option<FunctionSource> {
    let mut fields = cursor.fields()?;
    let path = |cursor: Cursor<'_>| {
        let path = cursor.clone().parse(forms::folder)?;
        Some(cursor.path_from_here(path.to_str()?))
    };
    let source = match fields.optional("path", |cursor| Some(path(cursor))) {
        Some(path) => {
            fields.misplaced(&["id", "version"], "`path` says which code it is");
            path.map(FunctionSource::Folder)
        }
        None => published(&mut fields),
    };
    fields.finish();
    source
}

fn published(fields: &mut Fields<'_>) -> Option<FunctionSource> {
    let id = fields.required("id", |cursor| cursor.parse(forms::function_id));
    let version = |cursor: Cursor<'_>| cursor.parse(forms::function_version);
    let version = fields.with_default("version", version, "latest".to_owned());
    Some(FunctionSource::Published { id: id?, version })
}

/// What `cortexoneConfig` says.
struct Config {
    id: String,
    version: String,
    base_url: Endpoint,
    api_key: Credential,
}

fn config(cursor: Cursor<'_>) -> Option<Config> {
    let mut fields = cursor.fields()?;
    let id = fields.required("id", |cursor| cursor.parse(forms::function_id));
    let version = fields.required("version", |cursor| cursor.parse(forms::function_version));
    let base_url = fields.optional("baseURL", |cursor| Some(cursor.parse_secret(forms::platform_url)));
    let base_url = base_url.unwrap_or_else(|| Endpoint::parse(PLATFORM).ok());
    let api_key = auth::secret(&mut fields, "apiKey", "apiKeySecretRef", forms::token);
    fields.finish();
    Some(Config { id: id?, version: version?, base_url: base_url?, api_key: api_key? })
}
