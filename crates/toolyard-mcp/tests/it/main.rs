//! The frontend in front of a scripted backend, with raw clients of every revision over every transport: a pipe,
//! streamable HTTP and HTTP+SSE.
//!
//! `test_gateway` is the frontend with its backend, `script` the behaviour of the backend, and `client` and `web` are
//! the clients.

#![cfg(test)]

mod batches;
mod changes;
mod client;
mod deadlines;
mod function;
mod functions;
mod heartbeats;
mod input_required;
mod legacy_requests;
mod limits;
mod listen;
mod methods;
mod multi_round_trip;
mod non_messages;
mod notifications;
mod pagination;
mod principals;
mod recorded_definitions;
mod resumability;
mod script;
mod tasks;
mod test_gateway;
mod upstream_tasks;
mod url_elicitation;
mod web;
