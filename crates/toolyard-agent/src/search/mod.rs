//! Finding tools and services among more than a model can be shown.
//!
//! - [`finder`], `reading`: an index of all tools, kept up with what there is;
//! - `found`: what a model reads of the tools that fit;
//! - [`calling`], `nearest`: calls of tools that were found, by their names;
//! - [`services`]: which services fit, in the form that agents know;
//! - [`hints`]: the services that a message is about, without being asked;
//! - [`tools`]: what a model calls.
//!
//! Each search looks at the registry as its caller sees it: what a caller may not use is not found, and no name of it is told.

pub mod calling;
pub mod finder;
mod found;
pub mod hints;
mod nearest;
mod reading;
pub mod services;
pub mod tools;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use toolyard_rank::Lexicon;

pub use calling::Calling;
pub use finder::Finder;
pub use hints::{Hint, PROMPT};
pub use services::{FoundService, Service, ServiceKind, Services};
pub use tools::{CALL, NAMES, SEARCH, SERVICES, Search, add};

/// What is known of English. It is read once, when somebody first needs it.
fn english() -> Arc<Lexicon> {
    static ENGLISH: LazyLock<Arc<Lexicon>> = LazyLock::new(|| Arc::new(Lexicon::english()));
    ENGLISH.clone()
}
