//! Functions that answer, in real worker processes.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod samples;
mod setup;
