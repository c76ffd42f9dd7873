//! Calls of tools by their names, for clients that do not list them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolyard_core::access::Price;
use toolyard_core::{Backend, Call, Caller, Catalog, Json, JsonError, Object, Outcome, Registry, ToolError};

use super::tools::CALL;

/// The gateway's own tools, of which [`CALL`] stands for the call that it names: that one goes through all layers in its place. It
/// goes around another backend, which may stand for calls itself.
pub struct Calling {
    inner: Arc<dyn Backend>,
    /// What goes on as long as it is there.
    _following: JoinSet<()>,
}

impl Calling {
    /// A backend around one that has the tool [`CALL`], which is asked where a call cannot be made: it says why. `following` are
    /// the tasks that end with it, such as [`Finder::follow`](super::Finder::follow).
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, following: JoinSet<()>) -> Self {
        Self { inner, _following: following }
    }
}

impl Backend for Calling {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.inner.catalog()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        self.inner.call(call)
    }

    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        match own {
            CALL => meant(call, registry),
            _ => self.inner.forward(own, call, registry),
        }
    }

    fn price(&self, call: &Call) -> Option<Price> {
        self.inner.price(call)
    }

    fn follow(&self, uri: &str) -> BoxStream<'static, Object> {
        self.inner.follow(uri)
    }

    fn roots_changed(&self, caller: &Caller) {
        self.inner.roots_changed(caller);
    }

    fn refresh(&self) {
        self.inner.refresh();
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.inner.stop()
    }
}

/// The call that is meant, where there is one.
fn meant(call: &Call, registry: &Registry) -> Option<Call> {
    let Wanted { name, arguments } = Wanted::read(call.arguments()).ok()?;
    let entry = registry.tool(&name).ok()?;
    // It would have to stand for yet another one.
    if *entry.name == **call.target.name() {
        return None;
    }
    Some(call.of(entry.name.clone(), arguments.to_json()))
}

/// What a call of [`CALL`] wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The tool.
    pub(super) name: String,
    /// Its arguments.
    pub(super) arguments: Object,
}

/// How much is shown of a member that is in the wrong place.
const LONGEST_MEMBER: usize = 64;

/// Why that is not said. The texts are for a model.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unclear {
    #[error(
        "name: is missing. Give the name of a tool as search_tools shows it, and what it takes in `arguments`."
    )]
    NoName,
    #[error("{0}: is no parameter here. What the tool takes goes into `arguments`.")]
    Misplaced(String),
    #[error("arguments: is no JSON object, which is what tools take: {0}")]
    Arguments(JsonError),
    #[error("arguments: is no JSON object, which is what tools take")]
    NoObject,
}

impl Wanted {
    /// Reads the arguments of a call. Those of the tool may be a text with JSON in it, as some models write them.
    pub(super) fn read(arguments: Option<&Json>) -> Result<Self, Unclear> {
        let said = arguments.and_then(|arguments| arguments.to_object().ok()).unwrap_or_default();
        if let Some((member, _)) = said.iter().find(|(member, _)| *member != "name" && *member != "arguments")
        {
            let member = member.chars().filter(|c| !c.is_control()).take(LONGEST_MEMBER).collect();
            return Err(Unclear::Misplaced(member));
        }
        let name = said.get_str("name").map(|name| name.trim().to_owned());
        let name = name.filter(|name| !name.is_empty()).ok_or(Unclear::NoName)?;
        let arguments = match said.get("arguments") {
            None => Object::new(),
            Some(none) if none.is_null() => Object::new(),
            Some(given) => object(given)?,
        };
        Ok(Self { name, arguments })
    }
}

fn object(given: &Json) -> Result<Object, Unclear> {
    match given.to_str() {
        Some(text) if text.trim().is_empty() => Ok(Object::new()),
        Some(text) => Object::parse(text.into_owned()).map_err(Unclear::Arguments),
        None if given.is_object() => given.to_object().map_err(|_| Unclear::NoObject),
        None => Err(Unclear::NoObject),
    }
}
