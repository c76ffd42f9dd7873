//! What a server says that it can do.

use toolyard_core::registry::Kind;
use toolyard_core::{Json, Object};

/// The capabilities of a server. One that has not told them yet may have all of them.
#[derive(Debug, Default)]
pub(super) struct Capabilities(Option<Object>);

impl Capabilities {
    /// Those that a result of `initialize` or `server/discover` names.
    pub(super) fn of(result: &Object) -> Self {
        Self(result.get("capabilities").and_then(|capabilities| capabilities.detach().to_object().ok()))
    }

    /// Takes away what means nothing at a server that says nothing by itself.
    pub(super) fn leave_to_connections(&mut self) {
        let Some(known) = &mut self.0 else { return };
        known.remove("logging");
        let resources = known.get("resources").and_then(|resources| resources.to_object().ok());
        if let Some(mut resources) = resources {
            resources.remove("subscribe");
            known.set("resources", resources.to_json());
        }
    }

    /// Whether the server may have lists of this kind. Some have tools and do not say so.
    pub(super) fn may_list(&self, kind: Kind) -> bool {
        kind == Kind::Tools || self.may(feature(kind))
    }

    /// Whether it says that it tells of changes of this list.
    pub(super) fn announces(&self, kind: Kind) -> bool {
        self.0.as_ref().is_some_and(|known| declares(known, feature(kind), "listChanged"))
    }

    /// Whether it says that it has resources. It may have more of them than it lists.
    pub(super) fn has_resources(&self) -> bool {
        self.0.is_some() && self.may("resources")
    }

    /// Whether it may tell of changes of single resources.
    pub(super) fn may_subscribe(&self) -> bool {
        self.0.as_ref().is_none_or(|known| declares(known, "resources", "subscribe"))
    }

    /// Whether it may be told how much to log.
    pub(super) fn may_log(&self) -> bool {
        self.may("logging")
    }

    /// Whether it runs tools as tasks (2025-11-25, basic/utilities/tasks, capabilities).
    pub(super) fn has_tasks(&self) -> bool {
        let member = |of: Option<&Json>, name: &str| of?.to_object().ok()?.get(name).map(Json::detach);
        let tasks = self.0.as_ref().and_then(|known| known.get("tasks"));
        let requests = member(tasks, "requests");
        let tools = member(requests.as_ref(), "tools");
        member(tools.as_ref(), "call").is_some()
    }

    /// Whether it may have this feature.
    fn may(&self, feature: &str) -> bool {
        self.0.as_ref().is_none_or(|known| known.get(feature).is_some_and(Json::is_object))
    }
}

/// Whether a part of a feature is there.
fn declares(known: &Object, feature: &str, part: &str) -> bool {
    let feature = known.get(feature).and_then(|feature| feature.to_object().ok());
    feature.is_some_and(|feature| feature.get(part).and_then(Json::to_bool) == Some(true))
}

/// The capability that a list belongs to.
const fn feature(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => "tools",
        Kind::Prompts => "prompts",
        Kind::Resources | Kind::Templates => "resources",
    }
}
