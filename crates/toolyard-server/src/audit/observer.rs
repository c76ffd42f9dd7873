//! Calls are noted as they end, and nothing waits for that.

use std::time::SystemTime;

use http::request::Parts;
use toolyard_core::layers::{Ended, Observation, Observer};
use toolyard_core::{Call, Code, Entry, Target, ToolError};

use toolyard_net::listener::ClientAddress;

use super::Audit;
use super::record::{Arguments, By, Seen, SeenCall};
use crate::keys::Visitor;

/// The longest request id that a client may choose, in bytes.
const LONGEST_ID: usize = 128;

impl Observer for Audit {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        Box::new(Begun { audit: self, entry, call: Box::new(self.seen(call)) })
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        let seen = SeenCall { outcome: error.code().row().wire, ..self.seen(call) };
        self.push(Seen::Call(Box::new(seen)));
    }
}

/// A call that has not ended.
struct Begun<'a> {
    audit: &'a Audit,
    entry: &'a Entry,
    call: Box<SeenCall>,
}

impl Observation for Begun<'_> {
    fn end(self: Box<Self>, ended: Ended<'_>) {
        let Begun { audit, entry, mut call } = *self;
        call.outcome = match ended.verdict() {
            Ok(true) => "ok",
            Ok(false) => "tool_error",
            Err(code) => code.row().wire,
        };
        call.handler = Some(entry.handler.name.clone());
        call.took = ended.took;
        audit.push(Seen::Call(call));
    }
}

impl Audit {
    /// What is known of a call at its beginning.
    fn seen(&self, call: &Call) -> SeenCall {
        let head = call.origin.as_deref().and_then(|origin| origin.downcast_ref::<Parts>());
        let chosen = head.and_then(|head| head.headers.get("x-request-id")?.to_str().ok());
        let chosen = chosen.filter(|id| (1..=LONGEST_ID).contains(&id.len())).map(str::to_owned);
        let arguments = match (&call.target, call.arguments()) {
            (Target::Tool(_) | Target::Prompt(_), Some(arguments)) => Arguments::Whole(arguments.clone()),
            _ => Arguments::None,
        };
        SeenCall {
            time: SystemTime::now(),
            request: chosen.unwrap_or_else(|| self.number()),
            by: By {
                principal: call.caller.principal.clone(),
                session: call.caller.session.clone(),
                ..head.map(by).unwrap_or_default()
            },
            target: call.target.clone(),
            handler: None,
            arguments,
            outcome: Code::Cancelled.row().wire,
            took: std::time::Duration::ZERO,
        }
    }
}

/// Who sent a request.
pub(crate) fn by(head: &Parts) -> By {
    let key = head.extensions.get::<Visitor>().and_then(|visitor| visitor.key.as_deref());
    By {
        principal: key.map(|(id, _)| id.clone()),
        key_name: key.map(|(_, name)| name.clone()),
        session: None,
        address: head.extensions.get::<ClientAddress>().copied(),
    }
}
