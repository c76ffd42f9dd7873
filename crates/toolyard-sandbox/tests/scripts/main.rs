//! Python scripts on this machine, as root and as ordinary users. The tests switch users with `setpriv`, so they must
//! run as root.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod cleanup;
mod hostile_packages;
mod isolation;
mod limits;
mod machine;
mod outcomes;
mod package_cache;
mod packages;
