//! What a client brings back to go on with something: the state of a parked call, or the id of a task.
//!
//! It says where that goes on: here, at another gateway of several that share a key, or at the server behind. It is
//! sealed for who was given it, so that nobody can make one, change one, or use somebody else's. So no gateway needs a
//! table of what is elsewhere.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::{Caller, Code, ToolError};

use super::Cluster;
use crate::seal::{Sealer, Unsealed};
use crate::wire::RpcError;

/// Gives out tickets, and reads them.
pub(super) struct Tickets {
    sealer: Sealer,
    /// Where other gateways reach this one. Empty where it is the only one.
    address: Arc<str>,
}

/// Where something goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In this process.
    Here,
    /// At another gateway, which is at this address.
    Gateway(Arc<str>),
    /// At the server of a handler that had the tool: a task, as it calls it.
    Server { handler: Arc<str>, tool: Arc<str>, task: Arc<str> },
}

impl Tickets {
    /// With a cluster, tickets are good at each of its gateways; without, they are worthless after a restart, as is all that
    /// they stand for.
    pub(super) fn new(cluster: Option<Cluster>) -> Self {
        match cluster {
            Some(Cluster { address, key }) => Self { sealer: Sealer::with_key(key), address },
            None => Self { sealer: Sealer::random(), address: "".into() },
        }
    }

    /// A ticket for something of this process.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(super) fn for_here(&self, binding: &[u8], ttl: Duration) -> Result<Arc<str>, RpcError> {
        self.issue(binding, &json!(["gateway", &*self.address]), ttl)
    }

    /// A ticket for a task that the server of a handler has made of a call of a tool.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(super) fn for_server(
        &self,
        binding: &[u8],
        [handler, tool, task]: [&str; 3],
        ttl: Duration,
    ) -> Result<Arc<str>, RpcError> {
        self.issue(binding, &json!(["server", handler, tool, task]), ttl)
    }

    fn issue(&self, binding: &[u8], place: &Value, ttl: Duration) -> Result<Arc<str>, RpcError> {
        let text = self.sealer.seal(binding, place.to_string().as_bytes(), ttl);
        match text.is_empty() {
            true => Err(RpcError::from(&ToolError::new(Code::Overloaded, "There are no random bytes"))),
            false => Ok(text.into()),
        }
    }

    /// Where that goes on which a ticket is for.
    ///
    /// # Errors
    /// When it was not given out for this, was changed, or is too old.
    pub(super) fn place(&self, binding: &[u8], ticket: &str) -> Result<Place, Unsealed> {
        let opened = self.sealer.open(binding, ticket)?;
        let parts: Vec<String> = serde_json::from_slice(&opened).map_err(|_| Unsealed::Tampered)?;
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            ["gateway", address] if *address == *self.address => Ok(Place::Here),
            ["gateway", address] => Ok(Place::Gateway(address.into())),
            ["server", handler, tool, task] => {
                Ok(Place::Server { handler: handler.into(), tool: tool.into(), task: task.into() })
            }
            _ => Err(Unsealed::Tampered),
        }
    }
}

/// Whose a task is.
pub(super) fn task_of(caller: &Caller) -> Vec<u8> {
    json!(["task", caller.session.as_deref(), caller.principal.as_deref()]).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn member(address: &str) -> Tickets {
        Tickets::new(Some(Cluster { address: address.into(), key: [7; 32] }))
    }

    #[test]
    fn gateways_of_one_key_know_where_to_go() {
        let [one, other] = ["http://a:1", "http://b:2"].map(member);
        let ticket = one.for_here(b"x", HOUR).unwrap();
        assert_eq!(one.place(b"x", &ticket), Ok(Place::Here));
        assert_eq!(other.place(b"x", &ticket), Ok(Place::Gateway("http://a:1".into())));
        assert_eq!(other.place(b"y", &ticket), Err(Unsealed::Tampered));
        let ticket = one.for_server(b"x", ["h", "greet", "task \"1\""], HOUR).unwrap();
        let (handler, tool, task) = ("h".into(), "greet".into(), "task \"1\"".into());
        let place = Place::Server { handler, tool, task };
        assert_eq!(other.place(b"x", &ticket), Ok(place));
    }

    #[test]
    fn a_gateway_alone_knows_its_own_only() {
        let [one, other] = [None, None].map(Tickets::new);
        let ticket = one.for_here(b"x", HOUR).unwrap();
        assert_eq!(one.place(b"x", &ticket), Ok(Place::Here));
        assert_eq!(other.place(b"x", &ticket), Err(Unsealed::Tampered));
        assert_eq!(one.place(b"x", &one.for_here(b"x", Duration::ZERO).unwrap()), Err(Unsealed::Expired));
    }

    #[test]
    fn tasks_of_different_callers_do_not_collide() {
        let caller = |session: Option<&str>, principal: Option<&str>| Caller {
            session: session.map(Arc::from),
            principal: principal.map(Arc::from),
            grant: None,
        };
        let bindings = [caller(None, None), caller(Some("a"), None), caller(None, Some("a"))];
        let bindings: std::collections::BTreeSet<_> = bindings.iter().map(task_of).collect();
        assert_eq!(bindings.len(), 3);
    }
}
