//! Scripts in Python on this machine, as root and as an ordinary user. The tests become the other one by `setpriv`, so
//! they have to be root themselves.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod ends;
mod installed;
mod limits;
mod machine;
mod outcomes;
mod walls;
