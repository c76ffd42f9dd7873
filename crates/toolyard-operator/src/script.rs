//! Scripts in pods.
//!
//! [`pod()`] builds the pod of a script, and [`PodRunner`] creates it, waits for its end, reads the output and deletes
//! it. In suggested reading order: [`options`], [`pod`](mod@pod), [`runner`].

mod cleaner;
mod observer;
pub mod options;
mod output;
pub mod pod;
pub mod runner;
mod state;

pub use options::PodOptions;
pub use pod::pod;
pub use runner::PodRunner;
