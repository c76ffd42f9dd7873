//! OpenAPI documents as tools.
//!
//! A description of a service ([`document`]) becomes [`Operation`]s, each with the definition of a tool; a call of one is
//! an HTTP request ([`Operation::request`]), and its response a result ([`response`]). All of it is pure: nothing here
//! reads a file or opens a connection.

pub mod operation;

pub use operation::Operation;
