//! Functions in real worker processes.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod attacks;
mod features;
mod interpreter;
mod network;
mod pool;
mod round_trips;
mod samples;
mod setup;
