//! OpenAPI documents as tools.
//!
//! A description of a service ([`Sources`]) becomes [`Operation`]s, each with the definition of a tool ([`read`]); a call
//! of one is an HTTP request ([`Operation::request`]), and its response a result ([`Operation::result`]). All of it is
//! pure: nothing here reads a file or opens a connection.

mod document;
pub mod operation;
#[cfg(test)]
mod properties;
mod read;
mod request;
mod resolve;
pub mod response;
mod schema;
mod security;
mod sources;
mod wire;

pub use document::SyntaxError;
pub use operation::Operation;
pub use read::{Described, Description, Fault, Filter, Options, read};
pub use response::Promise;
pub use security::{KeyPlace, Requirement, Scheme};
pub use sources::{Sources, Unreadable, join, origin};
pub use wire::escape::encoded as percent_encoded;
