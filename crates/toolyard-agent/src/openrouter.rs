//! Account information of OpenRouter: credits, keys, models and generations.
//!
//! - [`resource`]: the resources that can be read;
//! - [`api`]: the requests for them, of which all are `GET`, and their errors;
//! - [`response`]: conversion of responses to texts for models;
//! - [`tools`]: the tools.
//!
//! There is no operation that writes, so that callers can neither spend credits nor create keys.

pub mod api;
pub mod resource;
pub mod response;
pub mod tools;

#[cfg(test)]
pub(crate) mod tests;

use crate::guides::GuideDocument;

pub use api::{OpenRouterApi, OpenRouterError, OpenRouterResponse};
pub use resource::OpenRouterResource;
pub use tools::{NAMES, add};

/// Guide to the tools, for models.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "openrouter",
    "Read credits, keys, models with prices, and the cost of a completion in an account of OpenRouter",
    include_str!("openrouter/guide.md"),
);
