//! Embeddings of tools for the search: a client of an endpoint with the embeddings API of OpenAI.

mod client;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use toolyard_agent::search::ToolEmbeddings;
use toolyard_manifest::ProcessSettings;

use self::client::EmbeddingClient;
use crate::start::StartError;

/// Returns the embeddings of the process, if an endpoint is configured.
///
/// # Errors
/// If the endpoint is to be called with TLS and the system's root certificates cannot be read.
pub(crate) fn create(process: &ProcessSettings) -> Result<Option<Arc<ToolEmbeddings>>, StartError> {
    let search = process.builtins.as_ref().and_then(|builtins| builtins.search.as_ref());
    let Some(settings) = search.and_then(|search| search.embedding.as_ref()) else { return Ok(None) };
    let client = EmbeddingClient::new(settings).map_err(StartError::Tls)?;
    Ok(Some(Arc::new(ToolEmbeddings::new(Box::new(client), settings.clone()))))
}
