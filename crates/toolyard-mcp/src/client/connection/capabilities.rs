//! The capabilities of an upstream server.

use toolyard_core::registry::EntryKind;
use toolyard_core::{Json, Object};

/// The capabilities of a server. Unknown capabilities, `None`, count as present.
#[derive(Debug, Default)]
pub(in crate::client) struct ServerCapabilities(Option<Object>);

impl ServerCapabilities {
    /// Reads the capabilities from the result of `initialize` or `server/discover`.
    pub(in crate::client) fn of(result: &Object) -> Self {
        Self(result.get("capabilities").and_then(|capabilities| capabilities.detach().to_object().ok()))
    }

    /// Removes the capabilities that need messages from the server, which a hosted function cannot send.
    pub(super) fn drop_unsolicited(&mut self) {
        let Some(declared) = &mut self.0 else { return };
        declared.remove("logging");
        let resources = declared.get("resources").and_then(|resources| resources.to_object().ok());
        if let Some(mut resources) = resources {
            resources.remove("subscribe");
            declared.set("resources", resources.to_json());
        }
    }

    /// True if the server may have lists of this kind. Some servers have tools without declaring the capability.
    pub(in crate::client) fn may_list(&self, kind: EntryKind) -> bool {
        kind == EntryKind::Tools || self.has_feature(feature(kind))
    }

    /// True if the server declares that it announces changes of this list.
    pub(in crate::client) fn announces(&self, kind: EntryKind) -> bool {
        self.0.as_ref().is_some_and(|declared| declares(declared, feature(kind), "listChanged"))
    }

    /// True if the server declares resources. It may have more resources than it lists.
    pub(in crate::client) fn has_resources(&self) -> bool {
        self.0.is_some() && self.has_feature("resources")
    }

    /// True if the server may announce updates of single resources.
    pub(in crate::client) fn may_subscribe(&self) -> bool {
        self.0.as_ref().is_none_or(|declared| declares(declared, "resources", "subscribe"))
    }

    /// True if the server may accept a log level.
    pub(super) fn may_log(&self) -> bool {
        self.has_feature("logging")
    }

    /// True if the server runs tools as tasks (2025-11-25, basic/utilities/tasks, capabilities).
    pub(in crate::client) fn has_tasks(&self) -> bool {
        let member = |of: Option<&Json>, name: &str| of?.to_object().ok()?.get(name).map(Json::detach);
        let tasks = self.0.as_ref().and_then(|declared| declared.get("tasks"));
        let requests = member(tasks, "requests");
        let tools = member(requests.as_ref(), "tools");
        member(tools.as_ref(), "call").is_some()
    }

    /// True if the server may have this feature.
    fn has_feature(&self, feature: &str) -> bool {
        self.0.as_ref().is_none_or(|declared| declared.get(feature).is_some_and(Json::is_object))
    }
}

/// True if a part of a feature is declared.
fn declares(declared: &Object, feature: &str, part: &str) -> bool {
    let feature = declared.get(feature).and_then(|feature| feature.to_object().ok());
    feature.is_some_and(|feature| feature.get(part).and_then(Json::to_bool) == Some(true))
}

/// Returns the capability that a list belongs to.
const fn feature(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Tools => "tools",
        EntryKind::Prompts => "prompts",
        EntryKind::Resources | EntryKind::Templates => "resources",
    }
}
