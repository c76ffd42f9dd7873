//! OpenAPI documents as tools.
//!
//! A service description ([`DescriptionSources`]) is converted to [`OpenApiOperation`]s, each with a tool definition
//! ([`read`]). A call becomes an HTTP request ([`OpenApiOperation::request`]), and its response a result
//! ([`OpenApiOperation::result`]). The crate is pure: it reads no files and opens no connections.

mod callable;
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

pub use document::SpecSyntaxError;
pub use operation::OpenApiOperation;
pub use read::{
    DescribedOperation, DescriptionFault, OperationSelector, ReadOptions, ServiceDescription, read,
};
pub use response::ResultPromise;
pub use security::{ApiKeyLocation, SecurityRequirement, SecurityScheme};
pub use sources::{DescriptionError, DescriptionSources, join, origin};
pub use wire::escape::percent_encoded;
