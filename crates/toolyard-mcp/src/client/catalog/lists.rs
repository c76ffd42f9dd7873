//! Fetches the lists of a server.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use toolyard_core::item::InvalidItem;
use toolyard_core::registry::EntryKind;
use toolyard_core::{
    CacheHint, Catalog, Json, LeftOutItem, Object, Prompt, PublishedTemplate, Resource, Tool, json,
};

use super::expiry::cache_hint;
use super::list_invalidation::ListSet;
use crate::client::connection::{ConnectError, UpstreamConnection, refusal_error};
use crate::client::transport::{ClientTransport, TransportError};
use crate::wire::headers::{self, HeaderParam};
use crate::wire::{ProtocolEra, error, method};

/// Maximum number of items of a list that are reported as left out.
const MAX_LEFT_OUT: usize = 100;

/// Maximum number of pages of a list: a server may never end its list.
const MAX_PAGES: usize = 1000;

/// Timeout of a list other than that of the tools, which must not wait for the others.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A complete list.
struct FetchedList<T> {
    items: Vec<Arc<T>>,
    /// The combined cache hint of all pages; `None` in the legacy era.
    hint: Option<CacheHint>,
    /// Items with an invalid definition, or one beyond the limit of nesting.
    left_out: Vec<LeftOutItem>,
}

/// The parts of a catalog that a list replaces.
struct ListPlace<'c, T> {
    items: &'c mut Vec<Arc<T>>,
    hint: &'c mut Option<CacheHint>,
    left_out: &'c mut Vec<LeftOutItem>,
}

impl UpstreamConnection {
    /// Updates the given lists of a catalog. Invalid definitions are left out. A list other than that of the tools
    /// stays unchanged if it cannot be fetched.
    ///
    /// # Errors
    /// When the tools cannot be fetched, or the server cannot be reached.
    pub(in crate::client) async fn refresh_lists(
        &self,
        lists: ListSet,
        catalog: &mut Catalog,
    ) -> Result<(), ConnectError> {
        if lists.contains(EntryKind::Tools) {
            let tools = self.fetch_tools().await?;
            catalog.tools = tools.items;
            catalog.hints[EntryKind::Tools as usize] = tools.hint;
            catalog.left_out[EntryKind::Tools as usize] = tools.left_out;
        }
        let Catalog { prompts, resources, templates, hints, left_out, .. } = catalog;
        let [_, hint_of_prompts, hint_of_resources, hint_of_templates] = hints;
        let [_, no_prompts, no_resources, no_templates] = left_out;
        let prompts = ListPlace { items: prompts, hint: hint_of_prompts, left_out: no_prompts };
        let resources = ListPlace { items: resources, hint: hint_of_resources, left_out: no_resources };
        let templates = ListPlace { items: templates, hint: hint_of_templates, left_out: no_templates };
        tokio::try_join!(
            self.refresh_list(lists, EntryKind::Prompts, prompts, Prompt::from_definition),
            self.refresh_list(lists, EntryKind::Resources, resources, Resource::from_definition),
            self.refresh_list(lists, EntryKind::Templates, templates, PublishedTemplate::from_definition),
        )?;
        Ok(())
    }

    async fn refresh_list<T>(
        &self,
        lists: ListSet,
        kind: EntryKind,
        place: ListPlace<'_, T>,
        read: fn(&Json) -> Result<T, InvalidItem>,
    ) -> Result<(), ConnectError> {
        if !lists.contains(kind) {
            return Ok(());
        }
        if !self.capabilities.may_list(kind) {
            place.items.clear();
            place.left_out.clear();
            *place.hint = None;
            return Ok(());
        }
        let accept = |item: &Json| match read(item) {
            Ok(item) => Ok(Some(item)),
            Err(problem) => Err(self.left_out_item(kind, item, &problem)),
        };
        let list = timeout(LIST_TIMEOUT, self.fetch_list(kind, accept)).await;
        match list.unwrap_or(Err(ConnectError::Timeout(LIST_TIMEOUT))) {
            Ok(list) => {
                (*place.items, *place.hint, *place.left_out) = (list.items, list.hint, list.left_out);
            }
            Err(ConnectError::Transport(
                error @ (TransportError::Unreachable(_)
                | TransportError::SessionExpired
                | TransportError::SessionLost),
            )) => {
                return Err(error.into());
            }
            Err(error) => {
                let error = error.cause(&self.options.secrets);
                tracing::warn!(handler = %self.name, ?kind, %error, "failed to fetch a list");
            }
        }
        Ok(())
    }

    /// Fetches the header parameters of tools again; `false` on failure. The catalog stays unchanged.
    pub(in crate::client) async fn refresh_header_params(&self) -> bool {
        matches!(timeout(LIST_TIMEOUT, self.fetch_tools()).await, Ok(Ok(_)))
    }

    async fn fetch_tools(&self) -> Result<FetchedList<Tool>, ConnectError> {
        let mut header_params = HashMap::new();
        let mut unknown = self.options.filter.names();
        let tools = self.fetch_list(EntryKind::Tools, |item| {
            let left_out = |problem: &dyn Display| self.left_out_item(EntryKind::Tools, item, problem);
            let tool = Tool::from_definition(item).map_err(|problem| left_out(&problem))?;
            unknown.remove(&*tool.name);
            if !self.options.filter.admits(&tool.name) {
                return Ok(None);
            }
            let params = self.header_params_of(&tool).map_err(|problem| left_out(&problem))?;
            if !params.is_empty() {
                header_params.insert(tool.name.clone(), params);
            }
            Ok(Some(tool))
        });
        let tools = tools.await?;
        *self.header_params.write().unwrap_or_else(PoisonError::into_inner) = header_params;
        if !unknown.is_empty() && !self.has_warned_of_filter.swap(true, Ordering::Relaxed) {
            tracing::warn!(handler = %self.name, ?unknown, "the tool filter names unknown tools");
        }
        Ok(tools)
    }

    /// Returns the arguments of a tool that a modern HTTP server wants in headers.
    fn header_params_of(&self, tool: &Tool) -> Result<Vec<HeaderParam>, headers::BadAnnotation> {
        match (&self.transport, self.revision.era()) {
            (ClientTransport::Http(_), ProtocolEra::Modern) => headers::header_params(tool.input_schema()),
            _ => Ok(Vec::new()),
        }
    }

    /// Fetches all pages of a list, within the limits. A list that the server does not know is empty.
    async fn fetch_list<T>(
        &self,
        kind: EntryKind,
        mut accept: impl FnMut(&Json) -> Result<Option<T>, LeftOutItem>,
    ) -> Result<FetchedList<T>, ConnectError> {
        let (method, member) = list_terms(kind);
        let max_items = self.options.max_list_items;
        let (mut items, mut left_out) = (Vec::new(), Vec::new());
        let mut hint: Option<CacheHint> = None;
        let mut cursor: Option<Json> = None;
        let mut room = self.options.max_message_bytes;
        for _ in 0..MAX_PAGES {
            let params =
                cursor.iter().fold(Object::new(), |params, cursor| params.with("cursor", cursor.clone()));
            let page = match self.request(method, params).await? {
                // The list outlives the message and its memory reservation.
                Ok(page) => page.detach(),
                Err(error) if error.code == error::METHOD_NOT_FOUND => {
                    return Ok(FetchedList { items, hint, left_out });
                }
                Err(error) => return Err(refusal_error(method, &error)),
            };
            let Some(rest) = room.checked_sub(page.as_bytes().len()) else {
                tracing::warn!(handler = %self.name, ?kind, "list too large: left out the rest");
                break;
            };
            room = rest;
            let page = page.to_object().map_err(|_| ConnectError::Malformed(method))?;
            if self.revision.era() == ProtocolEra::Modern {
                let page_hint = cache_hint(&page);
                hint = Some(hint.map_or(page_hint, |hint| hint.and(page_hint)));
            }
            let page_items = page.get(member).and_then(|list| list.to_items().ok());
            for item in page_items.ok_or(ConnectError::Malformed(method))? {
                let read = match items.len() < max_items {
                    _ if self.is_too_deep(&item) => {
                        Err(self.left_out_item(kind, &item, &json::too_deep(self.options.max_depth)))
                    }
                    true => accept(&item),
                    false => Ok(None),
                };
                match read {
                    Ok(item) => items.extend(item.map(Arc::new)),
                    Err(item) => left_out.extend((left_out.len() < MAX_LEFT_OUT).then_some(item)),
                }
            }
            let next = page.get("nextCursor").filter(|cursor| !cursor.is_null()).map(Json::detach);
            if items.len() >= max_items {
                tracing::warn!(handler = %self.name, ?kind, "too many entries: left out the rest");
                break;
            }
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        Ok(FetchedList { items, hint, left_out })
    }

    /// True if a member of a definition is nested too deeply.
    fn is_too_deep(&self, definition: &Json) -> bool {
        definition.is_deeper_than(self.options.max_depth.saturating_add(1))
    }

    /// Returns the report about a definition that cannot be published.
    fn left_out_item(&self, kind: EntryKind, definition: &Json, problem: &dyn Display) -> LeftOutItem {
        let key = if kind == EntryKind::Resources { "uri" } else { "name" };
        let members = definition.to_object().unwrap_or_default();
        let name = members.get_str(key).unwrap_or_default();
        LeftOutItem { name: self.options.secrets.brief(&name).into(), reason: problem.to_string().into() }
    }
}

/// Returns the method that fetches a list, and the member of the result that holds it.
const fn list_terms(kind: EntryKind) -> (&'static str, &'static str) {
    match kind {
        EntryKind::Tools => (method::TOOLS_LIST, "tools"),
        EntryKind::Prompts => (method::PROMPTS_LIST, "prompts"),
        EntryKind::Resources => (method::RESOURCES_LIST, "resources"),
        EntryKind::Templates => (method::TEMPLATES_LIST, "resourceTemplates"),
    }
}
