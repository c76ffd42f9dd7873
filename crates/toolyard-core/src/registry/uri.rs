//! Qualified URIs: published URIs of servers that share a URI with another handler.

use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt};

use super::RegistryEntry;
use crate::call::{CallTarget, Caller, CompletionReference};
use crate::json::{Json, Object};
use crate::outcome::Outcome;

impl RegistryEntry {
    /// Returns the qualifier in front of this entry's URIs, or an empty text.
    fn qualifier(&self) -> &str {
        self.name.strip_suffix(&*self.own).unwrap_or_default()
    }

    /// Returns the server's own form of a URI; `None` if this entry does not match it.
    #[must_use]
    pub fn own_uri<'u>(&self, uri: &'u str) -> Option<&'u str> {
        uri.strip_prefix(self.qualifier())
    }

    /// Returns the qualifier in front of this URI.
    pub(super) fn qualifier_in(&self, uri: &str) -> &str {
        let qualifier = self.qualifier();
        if uri.starts_with(qualifier) { qualifier } else { "" }
    }

    /// Returns a target with the server's own URI, and the qualifier of the published one.
    pub(crate) fn addressed(&self, target: CallTarget) -> (CallTarget, &str) {
        let (CallTarget::Resource(uri) | CallTarget::Completion(CompletionReference::Template(uri))) =
            &target
        else {
            return (target.renamed(self.own.clone()), "");
        };
        // The entry of a template matches many resources.
        match self.qualifier_in(uri) {
            "" => (target, ""),
            qualifier => (target.renamed(Arc::from(&uri[qualifier.len()..])), qualifier),
        }
    }

    /// Follows a resource for a caller by its published URI: see [`Backend::follow`](crate::Backend::follow).
    #[must_use]
    pub fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        let qualifier = self.qualifier_in(uri);
        let changes = self.handler.backend.follow(&uri[qualifier.len()..], caller);
        if qualifier.is_empty() {
            return changes;
        }
        let qualifier = qualifier.to_owned();
        changes.map(move |said| qualified(said, &qualifier)).boxed()
    }
}

/// Qualifies the URIs in the contents of a resource.
pub(crate) fn qualify_contents(outcome: &mut Outcome, qualifier: &str) {
    let Outcome::Done(output) = outcome else { return };
    let Some(contents) = output.body.get("contents").and_then(|contents| contents.to_items().ok()) else {
        return;
    };
    let rename = |content: Json| match content.to_object() {
        Ok(object) => qualified(object, qualifier).to_json(),
        Err(_) => content,
    };
    let contents: Vec<_> = contents.into_iter().map(rename).collect();
    output.body.set("contents", Json::array(&contents));
}

/// Qualifies the URI in a notification about a resource.
fn qualified(mut said: Object, qualifier: &str) -> Object {
    if let Some(uri) = said.get_str("uri").map(|uri| format!("{qualifier}{uri}")) {
        said.set("uri", Json::string(&uri));
    }
    said
}
