//! Scripts in pods of their own.
//!
//! [`pod()`] says what such a pod is, and [`PodRunner`] makes it, waits for its end, reads what the script wrote and
//! deletes it. In suggested reading order: [`options`], [`pod`](mod@pod), [`runner`].

mod cleaner;
pub mod options;
mod output;
pub mod pod;
pub mod runner;
mod sightings;
mod state;

pub use options::PodOptions;
pub use pod::pod;
pub use runner::PodRunner;
