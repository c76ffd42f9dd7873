//! Pinned definitions of tools: detects changed tools, and withholds them if the manifest says so.
//!
//! The definitions that a handler offers first are trusted. From then on each tool's definition is compared with the
//! accepted one, also across restarts.

mod acceptances;
mod digest;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use toolyard_core::{BackendPhase, Catalog, Tool};
use toolyard_manifest as manifest;
use toolyard_manifest::DefinitionPin;

use self::acceptances::AcceptanceLog;
use super::handler_records::{HandlerRecords, key};

pub(crate) use self::digest::DefinitionDigest;

/// Minimum number of remembered definitions of tools that a handler does not offer any more.
const REMEMBERED: usize = 1000;

/// Minimum time between two reports of the same tool, because a server may change its tools all the time.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Definitions of all handlers' tools.
#[derive(Default)]
pub(crate) struct ToolDefinitions {
    /// Definitions by the keys of their records.
    handlers: HashMap<String, HandlerDefinitions>,
    changes: u64,
    /// Change counter of the operators' acceptances.
    acceptances: u64,
}

/// Definitions of one handler's tools.
#[derive(Default)]
struct HandlerDefinitions {
    accepted: BTreeMap<Arc<str>, AcceptedDefinition>,
    /// Tools whose offered definition differs from the accepted one.
    pending: BTreeMap<Arc<str>, PendingDefinition>,
    /// Offered tools.
    offered: HashMap<Arc<str>, (Arc<Tool>, DefinitionDigest)>,
    /// Acceptances by operators of this and other gateways.
    acceptances: AcceptanceLog,
    last: Option<LastReview>,
}

/// An accepted definition.
struct AcceptedDefinition {
    digest: DefinitionDigest,
    /// `None` if the definition was too large to store.
    tool: Option<Arc<Tool>>,
}

/// A definition that waits to be accepted.
struct PendingDefinition {
    digest: DefinitionDigest,
    /// Time of the last report.
    time: SystemTime,
}

/// The last reviewed catalog and its outcome.
struct LastReview {
    offered: Arc<Catalog>,
    pin: DefinitionPin,
    served: Arc<Catalog>,
}

/// A tool whose definition differs from the accepted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// Name of the tool at its upstream.
    pub tool: Arc<str>,
    /// Digest of the accepted definition. `None` for a new tool.
    pub old: Option<DefinitionDigest>,
    /// Digest of the offered definition.
    pub new: DefinitionDigest,
    /// Time of detection.
    pub time: SystemTime,
    /// The definition that callers see.
    pub served: ServedDefinition,
}

/// The definition of a changed tool that callers see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedDefinition {
    /// The accepted definition.
    Old,
    /// The offered definition.
    New,
    /// None: the tool is not listed and cannot be called.
    Nothing,
}

/// The reason why a change was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// The handler does not exist.
    #[error("unknown handler {0:?}")]
    NoHandler(String),
    /// The tool has not changed or does not exist.
    #[error("no change of tool {0:?} waits to be accepted")]
    NoChange(String),
    /// The tool has changed again.
    #[error("the offered definition is {0}, not the one to accept")]
    Another(DefinitionDigest),
}

/// The outcome of a catalog's review.
pub(super) struct CatalogReview {
    /// The catalog to serve.
    pub(super) catalog: Arc<Catalog>,
    /// The changes to report.
    pub(super) reported_changes: Vec<DefinitionChange>,
}

impl ToolDefinitions {
    /// Restores definitions from stored records.
    pub(super) fn from_records(
        handlers: &[manifest::HandlerConfig],
        records: &HashMap<String, Bytes>,
    ) -> Self {
        let definitions = |handler: &manifest::HandlerConfig| {
            let record = records.get(&key(handler))?;
            Some((key(handler), record::decode(handler, record)?))
        };
        Self { handlers: handlers.iter().filter_map(definitions).collect(), ..Self::default() }
    }

    /// Returns the definitions of these handlers as records.
    pub(super) fn records<'a>(
        &self,
        handlers: impl Iterator<Item = &'a manifest::HandlerConfig>,
    ) -> HandlerRecords {
        let record = |handler: &manifest::HandlerConfig| {
            let definitions =
                self.handlers.get(&key(handler)).filter(|definitions| !definitions.accepted.is_empty());
            (key(handler), definitions.map(|definitions| record::encode(definitions, handler.pin)))
        };
        handlers.map(record).collect()
    }

    /// Change counter of the definitions.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the operators' acceptances for these handlers as records.
    pub(super) fn acceptances<'a>(
        &self,
        handlers: impl Iterator<Item = &'a manifest::HandlerConfig>,
    ) -> HandlerRecords {
        let record = |handler: &manifest::HandlerConfig| {
            let definitions = self.handlers.get(&key(handler));
            (key(handler), definitions.and_then(|definitions| definitions.acceptances.encode()))
        };
        handlers.map(record).collect()
    }

    /// Change counter of the operators' acceptances.
    pub(super) const fn acceptance_changes(&self) -> u64 {
        self.acceptances
    }

    /// Merges operators' acceptances at other gateways. Returns the changes that are accepted here as a result.
    pub(super) fn merge_acceptances(
        &mut self,
        handler: &manifest::HandlerConfig,
        record: &Bytes,
    ) -> Vec<DefinitionChange> {
        if !handler.kind.has_server_definitions() {
            return Vec::new();
        }
        let definitions = self.handlers.entry(key(handler)).or_default();
        self.acceptances += u64::from(definitions.acceptances.merge(AcceptanceLog::decode(record)));
        let accepted: Vec<_> = definitions
            .pending
            .iter()
            .filter(|(tool, pending)| definitions.acceptances.contains(tool, &pending.digest))
            .filter_map(|(tool, _)| definitions.change(tool, handler.pin))
            .collect();
        accepted.iter().for_each(|change| definitions.accept(&change.tool));
        self.changes += u64::from(!accepted.is_empty());
        accepted
    }

    /// Returns `true` if the lists of the last run may be served: those of a handler that holds its definitions only if
    /// there are accepted ones to compare with.
    pub(super) fn allows_last_lists(&self, handler: &manifest::HandlerConfig) -> bool {
        let has_accepted =
            || self.handlers.get(&key(handler)).is_some_and(|definitions| !definitions.accepted.is_empty());
        handler.pin == DefinitionPin::Warn || has_accepted()
    }

    /// Removes all handlers but these.
    pub(super) fn retain<'a>(&mut self, handlers: impl Iterator<Item = &'a manifest::HandlerConfig>) {
        let keys: HashSet<_> = handlers.map(key).collect();
        self.handlers.retain(|key, _| keys.contains(key));
    }

    /// Compares the offered definitions of a handler with the accepted ones.
    pub(super) fn review(
        &mut self,
        handler: &manifest::HandlerConfig,
        offered: Arc<Catalog>,
    ) -> CatalogReview {
        if !handler.kind.has_server_definitions() {
            return CatalogReview { catalog: offered, reported_changes: Vec::new() };
        }
        let definitions = self.handlers.entry(key(handler)).or_default();
        if let Some(last) = &definitions.last
            && Arc::ptr_eq(&last.offered, &offered)
            && last.pin == handler.pin
        {
            return CatalogReview { catalog: last.served.clone(), reported_changes: Vec::new() };
        }
        // The record has definitions for one pin mode and only digests for the other.
        let is_repinned = definitions.last.as_ref().is_some_and(|last| last.pin != handler.pin);
        self.changes += u64::from(is_repinned);
        definitions.update_offered(&offered);
        let mut reported_changes = Vec::new();
        if offered.phase == BackendPhase::Ready {
            let has_changed = definitions.compare(handler.pin, &mut reported_changes);
            self.changes += u64::from(has_changed);
        }
        let served = definitions.served(handler.pin, &offered);
        definitions.last = Some(LastReview { offered, pin: handler.pin, served: served.clone() });
        CatalogReview { catalog: served, reported_changes }
    }

    /// Returns the changed tools of a handler.
    pub(super) fn pending(&self, handler: &manifest::HandlerConfig) -> Arc<[DefinitionChange]> {
        let Some(definitions) = self.handlers.get(&key(handler)) else { return Arc::default() };
        definitions.pending.keys().filter_map(|tool| definitions.change(tool, handler.pin)).collect()
    }

    /// Accepts the offered definitions of a handler or of one tool, if the digest matches. Returns the accepted
    /// changes.
    ///
    /// # Errors
    /// If no change of the tool waits, or its digest differs.
    pub(super) fn accept(
        &mut self,
        handler: &manifest::HandlerConfig,
        tool: Option<&str>,
        digest: Option<&str>,
    ) -> Result<Vec<DefinitionChange>, AcceptError> {
        let changes: Vec<_> = self
            .pending(handler)
            .iter()
            .filter(|change| tool.is_none_or(|tool| *change.tool == *tool))
            .cloned()
            .collect();
        if let Some(tool) = tool.filter(|_| changes.is_empty()) {
            return Err(AcceptError::NoChange(tool.to_owned()));
        }
        if let Some(other) =
            changes.iter().find(|change| digest.is_some_and(|digest| *change.new.0 != *digest))
        {
            return Err(AcceptError::Another(other.new.clone()));
        }
        if let Some(definitions) = self.handlers.get_mut(&key(handler)) {
            for DefinitionChange { tool, new, .. } in &changes {
                definitions.accept(tool);
                definitions.acceptances.add(tool, new);
            }
            self.changes += u64::from(!changes.is_empty());
            self.acceptances += u64::from(!changes.is_empty());
        }
        Ok(changes
            .into_iter()
            .map(|change| DefinitionChange { served: ServedDefinition::New, ..change })
            .collect())
    }
}

impl HandlerDefinitions {
    /// Updates the offered tools. Unchanged tools keep their digest.
    fn update_offered(&mut self, catalog: &Catalog) {
        let before = std::mem::take(&mut self.offered);
        // What single clients see is compared as well.
        let own = catalog.own.iter().flat_map(|own| own.tools.iter().flatten());
        for tool in catalog.tools.iter().chain(own) {
            // Of two tools with the same name, the first one counts.
            self.offered.entry(tool.name.clone()).or_insert_with(|| match before.get(&tool.name) {
                Some((previous, digest)) if previous == tool => (tool.clone(), digest.clone()),
                _ => (tool.clone(), DefinitionDigest::of(tool)),
            });
        }
    }

    /// Compares offered with accepted definitions. Returns true if there is something to store.
    fn compare(&mut self, pin: DefinitionPin, reported_changes: &mut Vec<DefinitionChange>) -> bool {
        let Self { accepted, pending, offered, acceptances, .. } = self;
        let is_first = accepted.is_empty();
        let mut has_changed = trim(accepted, offered);
        let waiting = pending.len();
        pending.retain(|tool, _| offered.contains_key(tool));
        has_changed |= pending.len() != waiting;
        let mut reported_names = Vec::new();
        for (name, (tool, digest)) in offered.iter() {
            let new = || AcceptedDefinition { digest: digest.clone(), tool: Some(tool.clone()) };
            match accepted.get_mut(name) {
                None if is_first || pin == DefinitionPin::Warn => {
                    accepted.insert(name.clone(), new());
                    pending.remove(name);
                    has_changed = true;
                }
                Some(previous) if previous.digest == *digest => {
                    // A held definition is stored again as soon as it is known.
                    has_changed |= pin == DefinitionPin::Hold && previous.tool.is_none();
                    has_changed |= pending.remove(name).is_some();
                    previous.tool = Some(tool.clone());
                }
                _ if acceptances.contains(name, digest) => {
                    accepted.insert(name.clone(), new());
                    pending.remove(name);
                    has_changed = true;
                }
                previous => {
                    if let Some(previous) = previous.filter(|_| !pending.contains_key(name)) {
                        previous.detach();
                    }
                    let (is_other, is_news) = add_pending(pending, name, digest);
                    has_changed |= is_other;
                    reported_names.extend(is_news.then(|| name.clone()));
                }
            }
        }
        reported_names.sort();
        reported_changes.extend(reported_names.iter().filter_map(|tool| self.change(tool, pin)));
        has_changed
    }

    /// Returns the catalog to serve.
    fn served(&self, pin: DefinitionPin, catalog: &Arc<Catalog>) -> Arc<Catalog> {
        // A handler without accepted definitions has nothing to hold.
        if pin == DefinitionPin::Warn || self.accepted.is_empty() {
            return catalog.clone();
        }
        let pinned_tool = |tool: &Arc<Tool>| {
            let accepted = self.accepted.get(&tool.name)?;
            // The definition that one client sees may differ from the compared one.
            let is_same = self.offered.get(&tool.name).is_some_and(|(offered, digest)| {
                accepted.digest == *digest && (Arc::ptr_eq(offered, tool) || offered == tool)
            });
            if is_same { Some(tool.clone()) } else { accepted.tool.clone() }
        };
        let pinned = |offered: &[Arc<Tool>]| -> Option<Vec<Arc<Tool>>> {
            let tools: Vec<_> = offered.iter().filter_map(pinned_tool).collect();
            let is_same = tools.len() == offered.len()
                && tools.iter().zip(offered).all(|(pinned_tool, offered)| Arc::ptr_eq(pinned_tool, offered));
            (!is_same).then_some(tools)
        };
        let tools = pinned(&catalog.tools);
        let own: Vec<_> = catalog.own.iter().map(|own| own.tools.as_deref().and_then(pinned)).collect();
        if tools.is_none() && own.iter().all(Option::is_none) {
            return catalog.clone();
        }
        let mut served = Catalog::clone(catalog);
        served.tools = tools.unwrap_or(served.tools);
        for (client, pinned) in served.own.iter_mut().zip(own) {
            client.tools = pinned.or_else(|| client.tools.take());
        }
        Arc::new(served)
    }

    fn change(&self, tool: &Arc<str>, pin: DefinitionPin) -> Option<DefinitionChange> {
        let pending = self.pending.get(tool)?;
        let accepted = self.accepted.get(tool);
        let served = match (pin, accepted) {
            (DefinitionPin::Warn, _) => ServedDefinition::New,
            (DefinitionPin::Hold, Some(AcceptedDefinition { tool: Some(_), .. })) => ServedDefinition::Old,
            (DefinitionPin::Hold, _) => ServedDefinition::Nothing,
        };
        let old = accepted.map(|accepted| accepted.digest.clone());
        Some(DefinitionChange {
            tool: tool.clone(),
            old,
            new: pending.digest.clone(),
            time: pending.time,
            served,
        })
    }

    fn accept(&mut self, tool: &Arc<str>) {
        self.pending.remove(tool);
        if let Some((offered, digest)) = self.offered.get(tool) {
            let accepted = AcceptedDefinition { digest: digest.clone(), tool: Some(offered.clone()) };
            self.accepted.insert(tool.clone(), accepted);
        }
        self.last = None;
    }
}

impl AcceptedDefinition {
    /// Detaches the definition from the rest of its list.
    fn detach(&mut self) {
        let copy = |tool: &Arc<Tool>| Tool::from_definition(&tool.definition.to_json().detach()).ok();
        if let Some(copy) = self.tool.as_ref().and_then(copy) {
            self.tool = Some(Arc::new(copy));
        }
    }
}

/// Records a waiting definition. Returns whether it is new, and whether to report it.
fn add_pending(
    pending: &mut BTreeMap<Arc<str>, PendingDefinition>,
    tool: &Arc<str>,
    digest: &DefinitionDigest,
) -> (bool, bool) {
    let now = SystemTime::now();
    match pending.get_mut(tool) {
        Some(pending) if pending.digest == *digest => (false, false),
        Some(pending) => {
            pending.digest = digest.clone();
            let is_news = now.duration_since(pending.time).is_ok_and(|time| time >= REPORT_INTERVAL);
            if is_news {
                pending.time = now;
            }
            (true, is_news)
        }
        None => {
            pending.insert(tool.clone(), PendingDefinition { digest: digest.clone(), time: now });
            (true, true)
        }
    }
}

/// Removes definitions that are not offered any more once there are too many.
fn trim(
    accepted: &mut BTreeMap<Arc<str>, AcceptedDefinition>,
    offered: &HashMap<Arc<str>, (Arc<Tool>, DefinitionDigest)>,
) -> bool {
    let exceeds_limit = accepted.len() > offered.len() + offered.len().max(REMEMBERED);
    if exceeds_limit {
        accepted.retain(|tool, _| offered.contains_key(tool));
    }
    exceeds_limit
}
