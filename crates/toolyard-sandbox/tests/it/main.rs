//! Programs in cells, on this machine's kernel, as root and as ordinary users. The test becomes the others by
//! `setpriv`, so it has to be root itself.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod attacks;
mod cells;
mod ends;
mod escapes;
mod limits;
mod machine;
