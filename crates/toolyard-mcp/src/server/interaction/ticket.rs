//! Tickets: the state of a suspended call, or the id of a task, which the client brings back.
//!
//! A ticket contains the location of the call or task: this gateway, another gateway of the cluster, or an upstream
//! server. It is sealed for its caller, so that it can be neither forged nor used by others. So no gateway needs a
//! table of what other gateways hold.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::{Caller, ErrorCode, ToolError};

use crate::server::ClusterMember;
use crate::wire::RpcError;
use toolyard_core::seal::{StateSealer, UnsealError};

/// Issues and opens tickets.
pub(in crate::server) struct TicketIssuer {
    sealer: StateSealer,
    /// Address of this gateway for the others; empty without a cluster.
    address: Arc<str>,
}

/// The location of a suspended call or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum TicketLocation {
    /// In this process.
    Here,
    /// At another gateway with this address.
    Gateway(Arc<str>),
    /// At the upstream server of a handler, or in the handler itself: its tool, and its own id of the task.
    Server { handler: Arc<str>, tool: Arc<str>, task: Arc<str> },
}

/// The place of a handler's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum TaskPlace {
    /// An upstream server, which every gateway reaches.
    Server,
    /// The process of this gateway.
    ThisGateway,
}

impl TicketIssuer {
    /// Creates an issuer. In a cluster, tickets are valid at every member; otherwise only until a restart, like
    /// everything that they stand for.
    pub(in crate::server) fn new(cluster: Option<ClusterMember>) -> Self {
        match cluster {
            Some(ClusterMember { address, key }) => Self { sealer: StateSealer::with_key(key), address },
            None => Self { sealer: StateSealer::random(), address: "".into() },
        }
    }

    /// Issues a ticket for something in this process.
    ///
    /// # Errors
    /// When the system provides no random bytes.
    pub(in crate::server) fn issue_local(&self, binding: &[u8], ttl: Duration) -> Result<Arc<str>, RpcError> {
        self.seal_location(binding, &json!(["gateway", &*self.address]), ttl)
    }

    /// Issues a ticket for a task of a handler.
    ///
    /// # Errors
    /// When the system provides no random bytes.
    pub(in crate::server) fn issue_upstream(
        &self,
        binding: &[u8],
        place: TaskPlace,
        [handler, tool, task]: [&str; 3],
        ttl: Duration,
    ) -> Result<Arc<str>, RpcError> {
        let location = match place {
            TaskPlace::Server => json!(["server", handler, tool, task]),
            TaskPlace::ThisGateway => json!(["handler", &*self.address, handler, tool, task]),
        };
        self.seal_location(binding, &location, ttl)
    }

    fn seal_location(&self, binding: &[u8], location: &Value, ttl: Duration) -> Result<Arc<str>, RpcError> {
        let text = self.sealer.seal(binding, location.to_string().as_bytes(), ttl);
        match text.is_empty() {
            true => Err(RpcError::from(&ToolError::new(
                ErrorCode::Overloaded,
                "The system provides no random bytes",
            ))),
            false => Ok(text.into()),
        }
    }

    /// Returns the location that a ticket contains.
    ///
    /// # Errors
    /// When the ticket was not issued for this binding, or has expired.
    pub(in crate::server) fn locate(
        &self,
        binding: &[u8],
        ticket: &str,
    ) -> Result<TicketLocation, UnsealError> {
        let payload = self.sealer.open(binding, ticket)?;
        let parts: Vec<String> = serde_json::from_slice(&payload).map_err(|_| UnsealError::Tampered)?;
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            ["gateway", address] if *address == *self.address => Ok(TicketLocation::Here),
            ["handler", address, ..] if *address != *self.address => {
                Ok(TicketLocation::Gateway(address.into()))
            }
            ["gateway", address] => Ok(TicketLocation::Gateway(address.into())),
            ["server", handler, tool, task] | ["handler", _, handler, tool, task] => {
                Ok(TicketLocation::Server { handler: handler.into(), tool: tool.into(), task: task.into() })
            }
            _ => Err(UnsealError::Tampered),
        }
    }
}

/// Returns the binding of a caller's tasks.
pub(in crate::server) fn task_binding(caller: &Caller) -> Vec<u8> {
    json!(["task", caller.session.as_deref(), caller.principal.as_deref()]).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn member(address: &str) -> TicketIssuer {
        TicketIssuer::new(Some(ClusterMember { address: address.into(), key: [7; 32] }))
    }

    #[test]
    fn cluster_members_locate_tickets() {
        let [one, other] = ["http://a:1", "http://b:2"].map(member);
        let ticket = one.issue_local(b"x", HOUR).unwrap();
        assert_eq!(one.locate(b"x", &ticket), Ok(TicketLocation::Here));
        assert_eq!(other.locate(b"x", &ticket), Ok(TicketLocation::Gateway("http://a:1".into())));
        assert_eq!(other.locate(b"y", &ticket), Err(UnsealError::Tampered));
        let issue = |place| one.issue_upstream(b"x", place, ["h", "greet", "task \"1\""], HOUR).unwrap();
        let (handler, tool, task) = ("h".into(), "greet".into(), "task \"1\"".into());
        let location = TicketLocation::Server { handler, tool, task };
        assert_eq!(other.locate(b"x", &issue(TaskPlace::Server)), Ok(location.clone()));
        let ticket = issue(TaskPlace::ThisGateway);
        assert_eq!(one.locate(b"x", &ticket), Ok(location));
        assert_eq!(other.locate(b"x", &ticket), Ok(TicketLocation::Gateway("http://a:1".into())));
    }

    #[test]
    fn single_gateway_opens_only_its_tickets() {
        let [one, other] = [None, None].map(TicketIssuer::new);
        let ticket = one.issue_local(b"x", HOUR).unwrap();
        assert_eq!(one.locate(b"x", &ticket), Ok(TicketLocation::Here));
        assert_eq!(other.locate(b"x", &ticket), Err(UnsealError::Tampered));
        assert_eq!(
            one.locate(b"x", &one.issue_local(b"x", Duration::ZERO).unwrap()),
            Err(UnsealError::Expired)
        );
    }

    #[test]
    fn tasks_of_different_callers_do_not_collide() {
        let caller = |session: Option<&str>, principal: Option<&str>| Caller {
            session: session.map(Arc::from),
            principal: principal.map(Arc::from),
            ..Caller::default()
        };
        let bindings = [caller(None, None), caller(Some("a"), None), caller(None, Some("a"))];
        let bindings: std::collections::BTreeSet<_> = bindings.iter().map(task_binding).collect();
        assert_eq!(bindings.len(), 3);
    }
}
