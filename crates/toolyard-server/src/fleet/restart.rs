//! Restarts of handlers, and handlers that are disabled until their restart.

use std::sync::Arc;

use super::{FleetMember, HandlerFleet, ServingHandler};

impl HandlerFleet {
    /// Starts a handler anew. The running one serves until its successor has answered or failed. Returns false if there is
    /// no such handler.
    pub(super) fn restart(&mut self, name: &str) -> bool {
        let Some(member) = member(&mut self.members, name) else { return false };
        let successor = ServingHandler::new(self.builder.build(&member.status.declared));
        let superseded = member.successor.replace(successor);
        superseded.into_iter().for_each(|serving| self.retire(serving));
        true
    }

    /// Stops a handler and withdraws what it offers, until its restart or an edit of its declaration. Returns false if
    /// there is no such handler.
    pub(super) fn disable(&mut self, name: &str) -> bool {
        let Some(member) = member(&mut self.members, name) else { return false };
        let disabled = ServingHandler::new(self.builder.build_disabled(&member.status.declared));
        let retired = [Some(std::mem::replace(&mut member.serving, disabled)), member.successor.take()];
        // Otherwise its tools would be listed as unavailable ones.
        member.last_catalog = Arc::default();
        retired.into_iter().flatten().for_each(|serving| self.retire(serving));
        true
    }
}

fn member<'a>(members: &'a mut [FleetMember], name: &str) -> Option<&'a mut FleetMember> {
    members.iter_mut().find(|member| member.status.declared.name.as_str() == name)
}
