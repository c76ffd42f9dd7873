//! The tool that a call over a bridge is for.

use std::sync::Arc;

use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::{Registry, ToolError};

/// Returns the tool of a server, by the server's own name for it or by its published one. Without the name of a server it
/// is that of the first server that has one. Case matters for tools, but not for servers.
///
/// # Errors
/// [`ErrorCode::ToolNotFound`](toolyard_core::ErrorCode::ToolNotFound).
pub(crate) fn tool_of_server(
    registry: &Registry,
    server: Option<&str>,
    tool: &str,
) -> Result<Arc<RegistryEntry>, ToolError> {
    let server = server.map(str::trim).filter(|server| !server.is_empty());
    let is_candidate = |entry: &&Arc<RegistryEntry>| {
        let is_of_server = server.is_none_or(|server| entry.handler.name.eq_ignore_ascii_case(server));
        !entry.handler.is_builtin && is_of_server
    };
    // Tools of unavailable servers are not listed. They explain the reason when they are called.
    let listed = || registry.entries(EntryKind::Tools).iter().filter(is_candidate);
    let callable = || registry.callable_entries(EntryKind::Tools).filter(is_candidate);
    let is_own = |entry: &&Arc<RegistryEntry>| *entry.own == *tool;
    let is_published = |entry: &&Arc<RegistryEntry>| *entry.name == *tool;
    let found = listed().find(is_own).or_else(|| listed().find(is_published));
    let found = found.or_else(|| callable().find(is_own)).or_else(|| callable().find(is_published));
    found.cloned().ok_or_else(|| ToolError::unknown_tool(tool))
}
