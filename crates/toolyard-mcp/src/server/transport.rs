//! The transports of clients: streamable HTTP, HTTP+SSE, and a pair of ordered streams. With them live the responses,
//! batches and refusals of HTTP, and the streams that a client can resume.

mod answer_store;
mod batch;
mod client_events;
pub mod duplex;
pub mod http;
pub mod refusal;
pub(super) mod replay;
pub(super) mod reply;
mod request_caller;
mod sse;
pub(super) mod streams;
