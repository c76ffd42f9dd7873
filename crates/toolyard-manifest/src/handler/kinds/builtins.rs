//! The handler of the built-in tools. `builtins` of the process declares it, not a registry.

use std::time::Duration;

use toolyard_core::overrides::ChunkingPolicy;

use super::{HandlerKind, HandlerSettings};
use crate::{
    formats::HandlerName,
    handler::{DefinitionPin, HandlerConfig, PrefixMode, RetryPolicy, secrets::SecretCollector},
    process::{BuiltinSettings, ScheduleAction},
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
        let of_web = self.web.iter().flat_map(|web| [web.search_key(), web.github_token.as_ref()]);
        key.into_iter().chain(of_web.flatten()).for_each(|key| secrets.add(key.expose()));
        let key = self.open_router.as_ref().and_then(|settings| settings.api_key.as_ref());
        key.iter().for_each(|key| secrets.credential(key));
        let action = self.schedules.as_ref().and_then(|schedules| schedules.action.as_ref());
        if let Some(ScheduleAction::Webhook(webhook)) = action {
            secrets.add(webhook.secret.expose());
            secrets.query_of(&webhook.url);
        }
        for card in self.agents.iter().flat_map(|agents| &agents.cards) {
            secrets.headers(&card.headers);
            [Some(&card.url), card.endpoint.as_ref()]
                .into_iter()
                .flatten()
                .for_each(|url| secrets.query_of(url));
        }
    }

    fn retry(&self) -> &RetryPolicy {
        &NO_RETRY
    }

    fn uses_tls(&self) -> bool {
        self.open_router.as_ref().is_some_and(|settings| settings.base_url.is_tls())
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
