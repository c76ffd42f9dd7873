//! Links that servers give: URIs of resources in the metadata of tools, and in results.
//!
//! Where a server's resource is published under another URI, or where a server's `ui://` URI would lead to another
//! server's page, the link gets the URI that leads back to the server. Other URIs, such as `https://` ones, may be meant for
//! the client itself, and stay.

use std::sync::Arc;

use memchr::memmem;

use super::{EncodedListing, EntryKind, Registry, RegistryEntry};
use crate::json::{Json, Object};
use crate::names;
use crate::outcome::Outcome;

/// Members of `_meta` with the page of a tool: of MCP Apps in its earlier form, and of ChatGPT.
const PAGES: [&str; 2] = ["ui/resourceUri", "openai/outputTemplate"];

/// The link to a page within the member `ui` of `_meta` (MCP Apps).
const UI_PAGE: &str = "resourceUri";

/// Finds the published URI of a link; `None` if it stays.
type Rename<'r> = dyn Fn(&str) -> Option<String> + 'r;

impl Registry {
    /// Returns the URI under which a handler's link leads back to it; `None` if the link stays as it is.
    fn published_link(&self, handler: &Arc<str>, uri: &str) -> Option<String> {
        let is_own = |entry: &Arc<RegistryEntry>| entry.handler.name == *handler;
        let found = self.resource(uri);
        if found.is_some_and(is_own) {
            return None;
        }
        let qualified = names::qualified(&names::qualifier(handler), uri);
        let is_listed = || self.resources.by_name.get(&*qualified).is_some_and(is_own);
        let is_templated = || {
            let mut own = self.patterns.iter().filter(|(_, entry)| is_own(entry));
            own.any(|(pattern, _)| pattern.matches(uri).is_some())
        };
        let leads_back = || self.resource(&qualified).is_some_and(is_own);
        let leads_astray = found.is_some();
        let is_page = || names::is_ui(uri) && (leads_astray || leads_back());
        // A client may open a web page itself, whichever server could read it as well.
        let is_unlisted = || leads_astray && !is_web(uri) && leads_back();
        (is_listed() || is_templated() || is_page() || is_unlisted()).then_some(qualified)
    }

    /// Makes the links of all tools lead back to their servers.
    pub(super) fn follow_tool_links(&mut self) {
        let listing = &self.part(EntryKind::Tools).listing;
        if let Some(followed) = self.with_followed_links(listing) {
            self.part_mut(EntryKind::Tools).listing = followed;
        }
    }

    /// Returns a listing of tools with other links; `None` if none changes.
    fn with_followed_links(&self, listing: &EncodedListing) -> Option<EncodedListing> {
        listing.with_definitions(|entry, definition| {
            // Most tools have no metadata.
            memmem::find(definition.as_bytes(), b"\"_meta\"")?;
            let mut definition = definition.to_object().ok()?;
            let rename = |uri: &str| self.published_link(&entry.handler.name, uri);
            follow_meta(&mut definition, &rename).then(|| definition.to_json())
        })
    }

    /// Makes the links in a handler's result lead back to it.
    pub(crate) fn follow_result_links(&self, handler: &Arc<str>, outcome: &mut Outcome) {
        let Outcome::Done(output) = outcome else { return };
        let rename = |uri: &str| self.published_link(handler, uri);
        follow_meta(&mut output.body, &rename);
        follow_list(&mut output.body, "content", |item| follow_block(item, &rename));
        follow_list(&mut output.body, "messages", |message| {
            let Some(Ok(mut block)) = message.get("content").map(Json::to_object) else { return false };
            follow_block(&mut block, &rename) && {
                message.set("content", block.to_json());
                true
            }
        });
    }
}

/// Returns `false` for most results, whose links need not be followed.
pub(crate) fn may_have_links(outcome: &Outcome) -> bool {
    let Outcome::Done(output) = outcome else { return false };
    let has_uri = |member: &&str| output.body.get(member).is_some_and(may_have_uri);
    output.body.get("_meta").is_some() || ["content", "messages"].iter().any(has_uri)
}

/// Returns `false` for a list without a member `uri` or `_meta`, such as texts, which may be long.
fn may_have_uri(list: &Json) -> bool {
    memmem::find(list.as_bytes(), b"\"uri\"").is_some()
        || memmem::find(list.as_bytes(), b"\"_meta\"").is_some()
}

fn is_web(uri: &str) -> bool {
    let has_scheme = |scheme: &str| uri.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    has_scheme("https:") || has_scheme("http:")
}

/// Changes the items of a list of objects. `change` returns `true` if it has changed an item.
fn follow_list(object: &mut Object, member: &str, mut change: impl FnMut(&mut Object) -> bool) {
    let Some(Ok(mut items)) = object.get(member).filter(|list| may_have_uri(list)).map(Json::to_items) else {
        return;
    };
    let mut has_changed = false;
    for item in &mut items {
        if let Ok(mut members) = item.to_object()
            && change(&mut members)
        {
            *item = members.to_json();
            has_changed = true;
        }
    }
    if has_changed {
        object.set(member, Json::array(&items));
    }
}

/// Changes the links of a content block: those of its `_meta`, and that of a `resource_link` or an embedded `resource`.
fn follow_block(block: &mut Object, rename: &Rename<'_>) -> bool {
    let has_changed = follow_meta(block, rename);
    match block.get_str("type").as_deref() {
        Some("resource_link") => follow_member(block, "uri", rename) || has_changed,
        Some("resource") => {
            let Some(Ok(mut resource)) = block.get("resource").map(Json::to_object) else {
                return has_changed;
            };
            let is_other = follow_member(&mut resource, "uri", rename) | follow_meta(&mut resource, rename);
            if is_other {
                block.set("resource", resource.to_json());
            }
            is_other || has_changed
        }
        _ => has_changed,
    }
}

/// Changes the links in the `_meta` of an object.
fn follow_meta(object: &mut Object, rename: &Rename<'_>) -> bool {
    let Some(Ok(mut meta)) = object.get("_meta").map(Json::to_object) else { return false };
    let mut has_changed = false;
    for member in PAGES {
        has_changed |= follow_member(&mut meta, member, rename);
    }
    if let Some(Ok(mut ui)) = meta.get("ui").map(Json::to_object)
        && follow_member(&mut ui, UI_PAGE, rename)
    {
        meta.set("ui", ui.to_json());
        has_changed = true;
    }
    if has_changed {
        object.set("_meta", meta.to_json());
    }
    has_changed
}

fn follow_member(object: &mut Object, member: &str, rename: &Rename<'_>) -> bool {
    let Some(uri) = object.get_str(member).and_then(|uri| rename(&uri)) else { return false };
    object.set(member, Json::string(&uri));
    true
}
