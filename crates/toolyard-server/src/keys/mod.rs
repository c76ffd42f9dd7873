//! Keys: who may come in, and what is open to them.
//!
//! - [`key`]: a key as it is written down, and its secret, which is not;
//! - [`record`]: keys are made, listed and revoked in the store, by whichever process;
//! - [`ring`]: the keys as a running gateway knows them;
//! - `rate`, [`quota`]: how often, and how much;
//! - [`door`]: what stands in front of every route.

pub mod door;
pub mod key;
pub mod quota;
mod rate;
pub mod record;
pub mod ring;
mod shown;

pub use door::{Access, Door, Visitor};
pub use key::{Amount, Key, KeyScope, NewKey, Period, Secret};
pub use ring::{KeyRing, Policy};
pub use shown::ShownKey;
