//! Interaction of a running call with its client: requests for input in each era, and calls that are suspended until
//! their client returns with a ticket.

pub(super) mod multi_round_trip;
pub(super) mod outbound_requests;
pub(super) mod request_client;
mod session_client;
pub(super) mod suspended_calls;
pub(super) mod ticket;
mod url_elicitation;
