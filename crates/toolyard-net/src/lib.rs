//! HTTP for both directions, independent of tools, calls and MCP.
//!
//! - [`listener`]: accepts connections, within limits, until it drains;
//! - [`workers`]: the threads that serve them;
//! - [`guard`]: refuses requests that a web page caused a browser to send;
//! - [`client`]: requests to other servers; `http2` (a feature): the same for HTTP/2;
//! - [`auth`], [`challenge`]: their credentials, and those that a server wants;
//! - [`proxy`]: the proxies that they go through;
//! - [`egress`]: the addresses that they may go to;
//! - [`budget`]: the limit of the bytes of all messages in flight;
//! - [`body`]: bodies, limited when read and not copied when written;
//! - [`header_values`]: values of headers, compared as HTTP has them;
//! - [`trace`]: trace context of requests;
//! - [`sse`]: server-sent events, read and written.

mod annotated_stream;
pub mod auth;
pub mod body;
pub mod budget;
pub mod challenge;
pub mod client;
pub mod egress;
pub mod failure;
pub mod guard;
pub mod header_values;
#[cfg(feature = "http2")]
pub mod http2;
pub mod listener;
mod pem_file;
pub mod proxy;
pub mod sse;
mod tls_verifier;
pub mod trace;
pub mod workers;
