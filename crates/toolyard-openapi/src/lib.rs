//! OpenAPI documents as tools.
//!
//! A description of a service ([`Sources`]) becomes [`Operation`]s, each with the definition of a tool; a call of one is
//! an HTTP request. All of it is pure: nothing here reads a file or opens a connection.

mod document;
pub mod operation;
mod read;
mod resolve;
mod schema;
pub mod security;
mod sources;

pub use document::SyntaxError;
pub use operation::Operation;
pub use read::{Described, Description, Fault, Filter, Options, read};
pub use sources::{Sources, Unreadable};
