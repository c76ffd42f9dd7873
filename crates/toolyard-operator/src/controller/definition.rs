//! Waiting for the definition of a resource.

use std::pin::pin;

use futures_util::TryStreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::runtime::wait::{Condition, conditions};
use kube::runtime::watcher::DefaultBackoff;
use kube::runtime::{WatchStreamExt, watcher};

use super::Context;

/// Waits until a definition, such as `languagetools.langop.io`, is established. It may be installed later than the
/// operator, so a missing one is no error.
pub async fn wait_for_definition(context: &Context, name: &str) {
    let definitions = Api::<CustomResourceDefinition>::all(context.client.clone());
    let is_established = conditions::is_crd_established();
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = pin!(watcher(definitions, config).backoff(DefaultBackoff::default()).applied_objects());
    tracing::debug!(definition = name, "waiting for a definition");
    loop {
        match events.try_next().await {
            Ok(Some(definition)) if is_established.matches_object(Some(&definition)) => break,
            Ok(Some(_)) => {}
            // The stream does not end, and repeats failed requests after a delay.
            Ok(None) => std::future::pending().await,
            Err(error) => tracing::warn!(definition = name, %error, "a definition cannot be watched"),
        }
    }
    tracing::info!(definition = name, "the definition is established");
}
