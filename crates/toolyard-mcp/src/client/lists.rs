//! Asks a server for its lists.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use toolyard_core::item::BadItem;
use toolyard_core::registry::Kind;
use toolyard_core::{CacheHint, Catalog, Json, Object, Prompt, Resource, Template, Tool};

use super::connection::{Connection, OpenError, refused};
use super::expiry::said_by;
use super::stale::Lists;
use super::transport::{Transport, TransportError};
use crate::wire::headers::{self, HeaderParam};
use crate::wire::{Era, error, method};

/// How many pages a list may have: a server that always has one more must end somewhere.
const MAX_PAGES: usize = 1000;

/// How long a list may take that is not the one of the tools, which must not wait for it for ever.
const LIST_TIME: Duration = Duration::from_secs(5);

/// A whole list.
struct Listed<T> {
    items: Vec<Arc<T>>,
    /// For how long it may be kept, which all its pages are asked. The legacy era does not say.
    hint: Option<CacheHint>,
}

impl Connection {
    /// Brings these lists of a catalog up to date. What is no definition, or breaks a rule that clients must enforce, is
    /// left out. A list other than that of the tools that is not to be had stays as it is.
    ///
    /// # Errors
    /// When the tools are not to be had, or the server.
    pub(super) async fn list(&self, lists: Lists, catalog: &mut Catalog) -> Result<(), OpenError> {
        if lists.has(Kind::Tools) {
            Listed { items: catalog.tools, hint: catalog.hints[Kind::Tools as usize] } =
                self.list_tools().await?;
        }
        let Catalog { prompts, resources, templates, hints, .. } = catalog;
        let [_, of_prompts, of_resources, of_templates] = hints;
        tokio::try_join!(
            self.list_others(lists, Kind::Prompts, (prompts, of_prompts), Prompt::from_definition),
            self.list_others(lists, Kind::Resources, (resources, of_resources), Resource::from_definition),
            self.list_others(lists, Kind::Templates, (templates, of_templates), Template::from_definition),
        )?;
        Ok(())
    }

    async fn list_others<T>(
        &self,
        lists: Lists,
        kind: Kind,
        (now, hint): (&mut Vec<Arc<T>>, &mut Option<CacheHint>),
        read: fn(&Json) -> Result<T, BadItem>,
    ) -> Result<(), OpenError> {
        if !lists.has(kind) {
            return Ok(());
        }
        if !self.capabilities.may_list(kind) {
            now.clear();
            *hint = None;
            return Ok(());
        }
        let accept = |item: &Json| read(item).inspect_err(|problem| self.left_out(kind, "", problem)).ok();
        let listed = timeout(LIST_TIME, self.read_list(kind, accept)).await;
        match listed.unwrap_or(Err(OpenError::TooSlow)) {
            Ok(listed) => (*now, *hint) = (listed.items, listed.hint),
            Err(OpenError::Transport(
                error @ (TransportError::Unreachable(_)
                | TransportError::SessionOver
                | TransportError::SessionLost),
            )) => {
                return Err(error.into());
            }
            Err(error) => {
                let error = super::link::reason(&error, &self.options.secrets);
                tracing::warn!(handler = %self.name, ?kind, error, "a list is not to be had");
            }
        }
        Ok(())
    }

    /// Learns anew which arguments the server wants mirrored; `false` where it does not say. The catalog is the keeper's.
    pub(super) async fn mirror_anew(&self) -> bool {
        matches!(timeout(LIST_TIME, self.list_tools()).await, Ok(Ok(_)))
    }

    async fn list_tools(&self) -> Result<Listed<Tool>, OpenError> {
        let mut mirrored = HashMap::new();
        let mut unknown = self.options.filter.names();
        let tools = self.read_list(Kind::Tools, |item| {
            let warn = |tool: &str, problem: &dyn Display| self.left_out(Kind::Tools, tool, problem);
            let tool = Tool::from_definition(item).inspect_err(|problem| warn("", problem)).ok()?;
            unknown.remove(&*tool.name);
            if !self.options.filter.admits(&tool.name) {
                return None;
            }
            let params = self.mirrored_of(&tool).inspect_err(|problem| warn(&tool.name, problem)).ok()?;
            if !params.is_empty() {
                mirrored.insert(tool.name.clone(), params);
            }
            Some(tool)
        });
        let tools = tools.await?;
        *self.mirrored.write().unwrap_or_else(PoisonError::into_inner) = mirrored;
        if !unknown.is_empty() && !self.has_checked.swap(true, Ordering::Relaxed) {
            tracing::warn!(handler = %self.name, ?unknown, "the tool filter has names of tools that are not there");
        }
        Ok(tools)
    }

    /// The arguments of a tool that a modern HTTP server wants mirrored.
    fn mirrored_of(&self, tool: &Tool) -> Result<Vec<HeaderParam>, headers::BadAnnotation> {
        match (&self.transport, self.revision.era()) {
            (Transport::Http(_), Era::Modern) => headers::header_params(tool.input_schema()),
            _ => Ok(Vec::new()),
        }
    }

    fn left_out(&self, kind: Kind, name: &str, problem: &dyn Display) {
        let name = self.options.secrets.brief(name);
        tracing::warn!(handler = %self.name, ?kind, %name, %problem, "a definition is left out");
    }

    /// Reads all pages of a list, as far as they fit the bounds. A server that does not know the list has nothing on it.
    async fn read_list<T>(
        &self,
        kind: Kind,
        mut accept: impl FnMut(&Json) -> Option<T>,
    ) -> Result<Listed<T>, OpenError> {
        let (method, member) = words(kind);
        let most = self.options.tools;
        let mut items = Vec::new();
        let mut hint: Option<CacheHint> = None;
        let mut cursor: Option<Json> = None;
        let mut room = self.options.message_bytes;
        for _ in 0..MAX_PAGES {
            let params =
                cursor.iter().fold(Object::new(), |params, cursor| params.with("cursor", cursor.clone()));
            let page = match self.ask(method, params).await? {
                Ok(page) => page,
                Err(error) if error.code == error::METHOD_NOT_FOUND => return Ok(Listed { items, hint }),
                Err(error) => return Err(refused(method, &error)),
            };
            let Some(rest) = room.checked_sub(page.as_bytes().len()) else {
                tracing::warn!(handler = %self.name, ?kind, "the pages of the list are too large: the rest is left out");
                break;
            };
            room = rest;
            let page = page.to_object().map_err(|_| OpenError::Malformed(method))?;
            if self.revision.era() == Era::Modern {
                let said = said_by(&page);
                hint = Some(hint.map_or(said, |hint| hint.and(said)));
            }
            let listed = page.get(member).and_then(|listed| listed.to_items().ok());
            for item in listed.ok_or(OpenError::Malformed(method))? {
                if items.len() < most {
                    items.extend(accept(&item).map(Arc::new));
                }
            }
            let next = page.get("nextCursor").filter(|cursor| !cursor.is_null()).map(Json::detach);
            if items.len() >= most {
                tracing::warn!(handler = %self.name, ?kind, "more than are allowed: the rest is left out");
                break;
            }
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        Ok(Listed { items, hint })
    }
}

/// The method by which a server is asked for a list, and the member of the result that is the list.
const fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Tools => (method::TOOLS_LIST, "tools"),
        Kind::Prompts => (method::PROMPTS_LIST, "prompts"),
        Kind::Resources => (method::RESOURCES_LIST, "resources"),
        Kind::Templates => (method::TEMPLATES_LIST, "resourceTemplates"),
    }
}
