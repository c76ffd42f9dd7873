//! The files of a release are installed and run by the programs that users have: dpkg, podman, npm and uv. They contain
//! the debug build of the gateway.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the tests start programs, and their helpers fail by panics"
)]

mod debian_root;
mod files;
mod launchers;
mod machine;
mod podman;
mod release_files;
mod tool_list;
