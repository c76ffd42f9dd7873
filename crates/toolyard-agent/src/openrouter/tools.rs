//! The tools, which read one resource each.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{RegisterError, Server, Tool, ToolAnnotations, ToolFailure};

use super::api::OpenRouterApi;
use super::resource::{OpenRouterResource, ResourceId};
use super::response::json_text;

/// Names of the tools, as agents know them.
pub const CREDITS: &str = "get_credits";
/// See [`CREDITS`].
pub const KEY_INFO: &str = "get_api_key_info";
/// See [`CREDITS`].
pub const MODELS: &str = "list_models";
/// See [`CREDITS`].
pub const KEYS: &str = "list_api_keys";
/// See [`CREDITS`].
pub const KEY: &str = "get_api_key";
/// See [`CREDITS`].
pub const GENERATION: &str = "get_generation";
/// Names of all tools.
pub const NAMES: [&str; 6] = [CREDITS, KEY_INFO, MODELS, KEYS, KEY, GENERATION];

const ABOUT_CREDITS: &str =
    "Returns the credits that the OpenRouter account has bought and used, in US dollars.";

const ABOUT_KEY_INFO: &str = "Returns limits and usage of the OpenRouter key that these tools use.";

const ABOUT_MODELS: &str = "Lists the models of OpenRouter with context lengths and prices per token.";

const ABOUT_KEYS: &str = "Lists the API keys of the OpenRouter account: hashes, names, limits and usage.";

const ABOUT_KEY: &str = "Returns limits and usage of one API key of the OpenRouter account.";

const ABOUT_GENERATION: &str =
    "Returns model, provider, token counts, latency and cost of one completion of OpenRouter.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ApiKeyArgs {
    /// As list_api_keys returns it
    key_hash: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GenerationArgs {
    /// Id of the completion, such as gen-1234567890
    generation_id: String,
}

/// Adds the tools to a server.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, api: &Arc<dyn OpenRouterApi>) -> Result<Server, RegisterError> {
    let fixed = [
        (CREDITS, ABOUT_CREDITS, OpenRouterResource::Credits),
        (KEY_INFO, ABOUT_KEY_INFO, OpenRouterResource::CurrentKey),
        (MODELS, ABOUT_MODELS, OpenRouterResource::Models),
        (KEYS, ABOUT_KEYS, OpenRouterResource::Keys),
    ];
    let server = fixed.into_iter().try_fold(server, |server, (name, about, resource)| {
        let (api, resource) = (api.clone(), Arc::new(resource));
        server.register_tool(read_only(name, about), move || {
            let (api, resource) = (api.clone(), resource.clone());
            async move { read(&*api, &resource).await }
        })
    })?;
    let [key, generation] = [(); 2].map(|()| api.clone());
    server
        .register_tool(read_only(KEY, ABOUT_KEY), async move |args: ApiKeyArgs| {
            let hash = id("keyHash", &args.key_hash, "a `hash` from list_api_keys")?;
            read(&*key, &OpenRouterResource::Key(hash)).await
        })?
        .register_tool(read_only(GENERATION, ABOUT_GENERATION), async move |args: GenerationArgs| {
            let id =
                id("generationId", &args.generation_id, "the id of a completion, such as gen-1234567890")?;
            read(&*generation, &OpenRouterResource::Generation(id)).await
        })
}

async fn read(api: &dyn OpenRouterApi, resource: &OpenRouterResource) -> Result<String, ToolFailure> {
    let response = api.get(resource).await?;
    Ok(json_text(resource, &response)?)
}

/// Parses an argument.
fn id(argument: &str, text: &str, expected: &str) -> Result<ResourceId, ToolFailure> {
    ResourceId::parse(text)
        .map_err(|invalid| ToolFailure::new(format!("{argument}: {invalid}; expected {expected}")))
}

fn read_only(name: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(true);
    Tool::new(name, about).annotations(hints)
}
