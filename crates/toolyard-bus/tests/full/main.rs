//! The bus through its public interface: one suite over each body, faults of brokers, and the worker.
//!
//! RabbitMQ and NATS are real servers, which a test starts on free ports and which end with the test.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the tables of counts are results")]

mod agents;
mod bodies;
mod cases;
mod cut_network;
mod executor;
mod faults;
mod foreign_clients;
mod limits;
mod mcp;
mod messages;
mod remote;
mod scripts;
mod stored_results;
mod support;
mod worker;
