//! Qualified URIs: published URIs of servers that share a URI with another handler.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt};

use super::RegistryEntry;
use crate::call::{CallTarget, Caller, CompletionReference};
use crate::json::{Json, Object};
use crate::names;
use crate::outcome::Outcome;

impl RegistryEntry {
    /// Returns the qualifier in this entry's URIs, if they have one.
    fn qualifier(&self) -> Option<String> {
        (self.name != self.own).then(|| names::qualifier(&self.handler.name))
    }

    /// Returns the server's own form of a URI; `None` if this entry does not match it.
    #[must_use]
    pub fn own_uri<'u>(&self, uri: &'u str) -> Option<Cow<'u, str>> {
        match self.qualifier() {
            None => Some(Cow::Borrowed(uri)),
            Some(qualifier) => names::unqualified(&qualifier, uri),
        }
    }

    /// Returns the qualifier in this URI.
    pub(super) fn qualifier_in(&self, uri: &str) -> Option<String> {
        self.qualifier().filter(|qualifier| names::unqualified(qualifier, uri).is_some())
    }

    /// Returns a target with the server's own URI, and the qualifier of the published one.
    pub(crate) fn addressed(&self, target: CallTarget) -> (CallTarget, Option<String>) {
        let (CallTarget::Resource(uri) | CallTarget::Completion(CompletionReference::Template(uri))) =
            &target
        else {
            return (target.renamed(self.own.clone()), None);
        };
        // The entry of a template matches many resources.
        match self.qualifier_in(uri) {
            None => (target, None),
            Some(qualifier) => {
                let own = names::unqualified(&qualifier, uri).unwrap_or_default();
                let own = Arc::from(&*own);
                (target.renamed(own), Some(qualifier))
            }
        }
    }

    /// Follows a resource for a caller by its published URI: see [`Backend::follow`](crate::Backend::follow).
    #[must_use]
    pub fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        let Some(qualifier) = self.qualifier_in(uri) else { return self.handler.backend.follow(uri, caller) };
        let own = names::unqualified(&qualifier, uri).unwrap_or_default();
        let changes = self.handler.backend.follow(&own, caller);
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
    if let Some(uri) = said.get_str("uri").map(|uri| names::qualified(qualifier, &uri)) {
        said.set("uri", Json::string(&uri));
    }
    said
}
