//! URIs that callers call otherwise than their owners do, because another handler has them too.

use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt};

use super::Entry;
use crate::call::{Reference, Target};
use crate::json::{Json, Object};
use crate::outcome::Outcome;

impl Entry {
    /// What stands in front of the URIs of this entry; nothing where they are the owner's own.
    fn qualifier(&self) -> &str {
        self.name.strip_suffix(&*self.own).unwrap_or_default()
    }

    /// What the owner calls a URI; `None` for one that this entry does not stand for.
    #[must_use]
    pub fn own_uri<'u>(&self, uri: &'u str) -> Option<&'u str> {
        uri.strip_prefix(self.qualifier())
    }

    /// What stands in front of this URI and does not mean anything to the owner.
    pub(super) fn qualifier_in(&self, uri: &str) -> &str {
        let qualifier = self.qualifier();
        if uri.starts_with(qualifier) { qualifier } else { "" }
    }

    /// A target as the owner knows it, and what stands in front of its URI.
    pub(crate) fn addressed(&self, target: Target) -> (Target, &str) {
        let (Target::Resource(uri) | Target::Completion(Reference::Template(uri))) = &target else {
            return (target.renamed(self.own.clone()), "");
        };
        // A template's entry stands for many resources.
        match self.qualifier_in(uri) {
            "" => (target, ""),
            qualifier => (target.renamed(Arc::from(&uri[qualifier.len()..])), qualifier),
        }
    }

    /// Follows a resource by what callers call it: see [`Backend::follow`](crate::Backend::follow).
    #[must_use]
    pub fn follow(&self, uri: &str) -> BoxStream<'static, Object> {
        let qualifier = self.qualifier_in(uri);
        let changes = self.handler.backend.follow(&uri[qualifier.len()..]);
        if qualifier.is_empty() {
            return changes;
        }
        let qualifier = qualifier.to_owned();
        changes.map(move |said| qualified(said, &qualifier)).boxed()
    }
}

/// What was read by a URI, with what callers call each part of it by.
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

/// Something that an owner says of one of its resources, for who knows them by other URIs.
fn qualified(mut said: Object, qualifier: &str) -> Object {
    if let Some(uri) = said.get_str("uri").map(|uri| format!("{qualifier}{uri}")) {
        said.set("uri", Json::string(&uri));
    }
    said
}
