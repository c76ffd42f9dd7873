//! The handler of the built-in tools. `builtins` of the process declares it, not a registry.

use std::time::Duration;

use toolyard_core::overrides::ChunkingPolicy;

use super::{HandlerKind, HandlerSettings};
use crate::{
    formats::HandlerName,
    handler::{DefinitionPin, HandlerConfig, PrefixMode, RetryPolicy, secrets::SecretCollector},
    process::BuiltinSettings,
};

/// Built-in tools are never retried.
const NO_RETRY: RetryPolicy = RetryPolicy::attempts(1);

/// Time-out of a call of a built-in tool: a script may run for five minutes, after the installation of its packages.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

impl HandlerSettings for BuiltinSettings {
    fn endpoint(&self) -> String {
        "the gateway itself".to_owned()
    }

    fn add_secrets(&self, secrets: &mut SecretCollector) {
        let key = self.llm.as_ref().and_then(|llm| llm.api_key.as_ref());
        key.iter().for_each(|key| secrets.add(key.expose()));
    }

    fn retry(&self) -> &RetryPolicy {
        &NO_RETRY
    }

    fn uses_tls(&self) -> bool {
        false
    }

    fn has_server_definitions(&self) -> bool {
        false
    }
}

impl HandlerConfig {
    /// Returns the handler of the built-in tools.
    pub(crate) fn for_builtins(builtins: BuiltinSettings) -> Option<Self> {
        Some(Self {
            name: HandlerName::parse(Self::BUILTINS).ok()?,
            registry: Self::BUILTINS.to_owned(),
            timeout: TIMEOUT,
            prefix: PrefixMode::default(),
            pin: DefinitionPin::default(),
            overrides: Vec::new(),
            price: None,
            display_name: None,
            description: None,
            chunking: ChunkingPolicy::default(),
            rename_arguments: None,
            probe: None,
            kind: HandlerKind::Builtins(Box::new(builtins)),
            reference_values: Vec::new(),
        })
    }
}
