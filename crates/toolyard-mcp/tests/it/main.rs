//! The frontend in front of a scripted backend, spoken to by raw clients of every revision over all that carries
//! messages: a pipe, streamable HTTP, and HTTP+SSE.
//!
//! `yard` is the frontend and what is behind it, `script` what the backend does, `client` and `web` are the other
//! side.

#![cfg(test)]

mod batches;
mod bounds;
mod changes;
mod client;
mod deadlines;
mod exchanges;
mod foreign_tasks;
mod function;
mod heartbeats;
mod legacy_asks;
mod listen;
mod methods;
mod needs;
mod notices;
mod pages;
mod principals;
mod resuming;
mod rounds;
mod script;
mod tasks;
mod visits;
mod web;
mod yard;
