//! Where other people's code runs: walls around programs, and scripts in them.
//!
//! - [`Sandbox`]: knows which walls this machine has, and starts programs within them;
//! - [`Cell`]: what a program may have; [`CellProgram`]: a program of the system, or a function of our own binary;
//! - [`Confined`]: a program that runs there, and how it ended;
//! - [`enter_if_asked`]: what the binary does when it is started to put up the walls;
//! - [`packages`]: packages for Python, built once and kept.
//!
//! A program in a cell has this above it, each killed when the one above it ends:
//!
//! ```text
//! gateway
//! └─ supervisor          of toolyard-process: what is below it ends with it
//!    └─ helper           our own binary again: joins cgroups, leaves namespaces (`confine`)
//!       └─ process 1     of the cell: makes its root, reaps
//!          └─ program    without rights, below Landlock and seccomp
//! ```
//!
//! Which walls there are, what each is for and what is left open without it is in `docs/sandbox.md`.

mod cell;
mod cgroup;
mod confine;
mod confined;
mod error;
mod home;
mod layers;
pub mod packages;
mod probe;
mod sandbox;
pub mod script;
mod watchdog;

pub use cell::{Cell, CellProgram, Isolation, Mount};
pub use confine::Entry;
pub use confined::{Confined, Verdict};
pub use error::SandboxError;
pub use layers::{Layer, LayerReport};
pub use sandbox::{Sandbox, SandboxOptions};

/// What a binary does first of all in its `main`, before any thread starts, if a [`Sandbox`] is to use it: where it
/// was started to put up walls it does so, and this does not return. `entries` are the functions of the binary that
/// can run in a cell, by their names ([`CellProgram::Inner`]). They run with the rights of the cell, in a process of
/// their own.
pub fn enter_if_asked(entries: &[(&str, Entry)]) {
    confine::enter_if_asked(entries);
}
