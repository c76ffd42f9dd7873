//! Who runs calls.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;

use crate::access::Price;
use crate::cache::CacheHint;
use crate::call::{Call, Caller};
use crate::error::ToolError;
use crate::item::{Prompt, Resource, Template};
use crate::json::Object;
use crate::outcome::Outcome;
#[cfg(doc)]
use crate::registry::Kind;
use crate::registry::Registry;
use crate::tool::Tool;

/// Something that publishes a catalog and runs calls.
pub trait Backend: Send + Sync {
    /// What it offers now, and every change of that. A catalog is swapped whole.
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>>;

    /// Runs a call whose target carries the owner's own name. Dropping the future cancels the call.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>>;

    /// The call that this one of a tool stands for, as `call_tool` stands for the call of whichever tool its arguments name. `own`
    /// is the owner's own name of what is called, `registry` what there is for the caller. [`Gateway::invoke`](crate::Gateway::invoke) runs that one
    /// instead, as if the caller had made it: [`Call::of`] makes it.
    ///
    /// `None`: it is a call like all others. So is one whose arguments do not say what is meant: it runs, and may say what is wrong.
    fn forward(&self, _own: &str, _call: &Call, _registry: &Registry) -> Option<Call> {
        None
    }

    /// What this call costs, where its owner says so. What the manifest says comes before.
    fn price(&self, _call: &Call) -> Option<Price> {
        None
    }

    /// Follows a resource: an item each time that it, or a part of it, has changed, which is what the owner says of that:
    /// the parameters of the notification, `uri` among them. Of changes that nobody takes, the latest is enough. A backend that has to arrange this with somebody gives
    /// one as soon as it has, for what may have changed until then. Dropping the stream ends the interest.
    fn follow(&self, _uri: &str) -> BoxStream<'static, Object> {
        stream::pending().boxed()
    }

    /// A client has other folders than it had: whoever has asked it for them, and nobody else, wants to know.
    fn roots_changed(&self, _caller: &Caller) {}

    /// Is to look anew what there is, and if it is not connected, to try that now.
    fn refresh(&self) {}

    /// Lets go of what it holds, in the order that those on the other side expect. No call is running
    /// any more. Dropping a backend that was not stopped ends the same things at once.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What a backend offers now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// How the backend is.
    pub phase: Phase,
    /// What it speaks, such as `MCP 2025-11-25`, where that is known by now. For people.
    pub protocol: Option<Arc<str>>,
    /// Its tools, in its order: where it is not ready, those that it had when it was.
    pub tools: Vec<Arc<Tool>>,
    /// Its prompts.
    pub prompts: Vec<Arc<Prompt>>,
    /// Its resources.
    pub resources: Vec<Arc<Resource>>,
    /// What stands for more resources than can be listed.
    pub templates: Vec<Arc<Template>>,
    /// Whether it may have resources that are on no list and that no template stands for.
    pub unlisted: bool,
    /// How long each of these lists may be kept, where its owner says so, in the order of [`Kind::ALL`].
    pub hints: [Option<CacheHint>; 4],
}

/// How a backend is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not heard of yet.
    #[default]
    Connecting,
    /// It answers.
    Ready,
    /// It does not answer, and is tried again.
    Unavailable {
        /// Why, in words that an operator may read.
        reason: String,
    },
}
