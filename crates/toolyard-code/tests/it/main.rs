//! Scripts in real workers, over tools of a gateway in this process.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod calls;
mod guide;
mod harness;
mod hostile;
mod languages;
mod progress;
mod quotas;
