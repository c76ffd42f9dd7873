//! The files of a release are installed and run by the programs that users have: dpkg, podman, npm and uv. They contain
//! the debug build of the gateway.

#![expect(clippy::disallowed_methods, reason = "the tests start programs")]

mod debian_root;
mod files;
mod launchers;
mod podman;
mod release_files;
mod tool_list;
