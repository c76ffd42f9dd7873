//! A handler with `selector`: the Services of a cluster with certain labels, each of which is one tool.
//!
//! This module only reads and converts. A program that watches the cluster asks for the handlers of the Services.

mod cluster_service;

use std::collections::BTreeMap;

pub use self::cluster_service::{ClusterService, SelectedServices, ServiceNote, ServicePort};
use super::{HandlerScope, HandlerSettings};
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats,
    handler::{RetryPolicy, secrets::SecretCollector},
};

/// The Services that `selector` matches.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectorHandler {
    /// `matchLabels`: labels that a Service must have, all of them.
    pub match_labels: BTreeMap<String, String>,
    /// `namespace`: the namespace of the Services. Default: that of the registry.
    pub namespace: String,
    /// `port`: name of the port. Default: the first port of a Service.
    pub port: Option<String>,
    retry: RetryPolicy,
}

/// The reason why other fields do not belong beside `selector`.
const REASON: &str =
    "the Services that `selector` matches are the tools, and their annotations configure them";

/// Fields that other handlers have, beside those of their kinds.
const OTHER_FIELDS: &[&str] = &["type", "retries", "retryPolicy", "auth"];

impl SelectorHandler {
    /// Reads `selector`. `None` if the handler has none. `other` are the fields of the kinds of handlers.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether it is present, as with every reader"
    )]
    pub(super) fn read_optional<'a>(
        fields: &mut ObjectFields<'a>,
        scope: &HandlerScope<'_>,
        other: impl Iterator<Item = &'static str>,
    ) -> Option<Option<Self>> {
        let selector = fields.optional("selector", |cursor| Some(selector(cursor, scope.namespace)))?;
        let others: Vec<_> = OTHER_FIELDS.iter().copied().chain(other).collect();
        fields.reject_misplaced(&others, REASON);
        Some(selector)
    }
}

fn selector(cursor: ValueCursor<'_>, namespace: &str) -> Option<SelectorHandler> {
    let mut fields = cursor.fields()?;
    let match_labels = fields.required("matchLabels", match_labels);
    let namespace =
        fields.with_default("namespace", |cursor| cursor.parse(formats::namespace), namespace.to_owned());
    let port = fields.optional("port", |cursor| cursor.parse(formats::port_name));
    fields.reject_unsupported(&["matchExpressions"]);
    fields.finish();
    let retry = RetryPolicy::attempts(1);
    Some(SelectorHandler { match_labels: match_labels?, namespace, port, retry })
}

fn match_labels(cursor: ValueCursor<'_>) -> Option<BTreeMap<String, String>> {
    let labels = cursor.clone().entries(formats::label_key, |cursor| cursor.parse(formats::label_value))?;
    if cursor.is_empty_collection() {
        cursor.report(cursor.problem("this matches every Service").expected("at least one label"));
        return None;
    }
    Some(labels.into_iter().collect())
}

impl HandlerSettings for SelectorHandler {
    /// The namespace and the labels, as `kubectl --selector` has them.
    fn endpoint(&self) -> String {
        let labels: Vec<_> =
            self.match_labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("selector://{}/{}", self.namespace, labels.join(","))
    }

    fn add_secrets(&self, _secrets: &mut SecretCollector) {}

    fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    fn uses_tls(&self) -> bool {
        false
    }

    fn has_server_definitions(&self) -> bool {
        false
    }
}
