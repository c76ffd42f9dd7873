//! The tools that agents always need, written with the SDK. The gateway publishes them as one handler.
//!
//! - [`scripts`]: Python, run where it can do no harm;
//! - [`chunk`]: long texts in pieces that a model can read one by one;
//! - [`trim`]: results made shorter after a model has refused them, for hosts;

pub mod chunk;
pub mod scripts;
pub mod trim;
