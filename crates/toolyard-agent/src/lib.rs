//! The tools that agents always need, written with the SDK. The gateway publishes them as one handler.
//!
//! - [`scripts`]: Python, run where it can do no harm.

pub mod scripts;
