//! Isolated execution of untrusted programs and scripts.
//!
//! - [`Sandbox`]: detects the isolation layers of this machine and starts programs within them;
//! - [`SandboxSpec`]: limits and access of a program; [`SandboxProgram`]: a program of the system, or a function of
//!   our own binary;
//! - [`SandboxedProcess`]: a running program and its outcome;
//! - [`enter_if_asked`]: entry point of the helper process that sets up the isolation;
//! - [`packages`]: Python packages, installed once and cached.
//!
//! Process tree of a sandboxed program; each process is killed when the one above it ends:
//!
//! ```text
//! gateway
//! └─ supervisor          of toolyard-process: kills everything below it when it ends
//!    └─ helper           our own binary: joins cgroups, enters namespaces (`confine`)
//!       └─ process 1     of the sandbox: builds its root file system, reaps processes
//!          └─ program    without privileges, restricted by Landlock and seccomp
//! ```
//!
//! `docs/sandbox.md` describes the isolation layers, their purpose, and the consequences of a missing layer.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "the gateway runs on Linux only: its sandbox consists of namespaces, cgroups, Landlock and seccomp. Run the image of \
     Toolyard or a virtual machine with Linux; tools on `toolyard-sdk` run on macOS too. See docs/install.md"
);

mod cgroup;
mod confine;
mod error;
mod home;
mod layers;
pub mod packages;
mod probe;
mod sandbox;
mod sandbox_spec;
mod sandboxed_process;
pub mod script;
mod users;
mod watchdog;

pub use confine::EntryFunction;
pub use error::SandboxError;
pub use layers::{IsolationLayer, IsolationLevel, LayerReport};
pub use sandbox::{Sandbox, SandboxOptions};
pub use sandbox_spec::{IsolationRequirement, ReadOnlyMount, SandboxProgram, SandboxSpec};
pub use sandboxed_process::{SandboxOutcome, SandboxedProcess};
pub use users::UidRange;

/// Runs the helper if the process was started as one, and does not return in that case.
///
/// A binary used by a [`Sandbox`] calls this at the start of `main`, before it starts threads. `entries` are the
/// functions of the binary that can run in a sandbox, by name ([`SandboxProgram::Inner`]). They run with the
/// privileges of the sandbox, in a process of their own.
pub fn enter_if_asked(entries: &[(&str, EntryFunction)]) {
    confine::enter_if_asked(entries);
}
