//! Sandboxed programs on the kernel of this machine, as root and as ordinary users. The tests switch users with
//! `setpriv`, so they must run as root.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod attacks;
mod cleanup;
mod escapes;
mod limits;
mod machine;
mod neighbours;
mod sandboxes;
