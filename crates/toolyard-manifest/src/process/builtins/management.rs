//! The reader of `builtins.mcp`.

use crate::{cursor::ValueCursor, formats};

/// MCP servers that agents may add at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementSettings {
    /// `allow`: the permitted servers. `None`: no server can be added.
    pub allow: Option<AllowedServers>,
    /// `servers`: maximum number of added servers. Default: 50.
    pub servers: usize,
}

/// The servers that agents may add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedServers {
    /// `commands`: permitted programs, which are compared exactly. Default: none.
    pub commands: Vec<String>,
    /// `hosts`: permitted hosts, with or without a port. A leading `*.` matches any subdomain. Default: none.
    pub hosts: Vec<String>,
    /// `env`: environment variables that may be set for a program. Default: none.
    pub env: Vec<String>,
}

impl Default for ManagementSettings {
    fn default() -> Self {
        Self { allow: None, servers: 50 }
    }
}

/// Reads the object `mcp`; `enabled: false` becomes `None`.
pub(super) fn management(cursor: ValueCursor<'_>) -> Option<Option<ManagementSettings>> {
    let mut fields = cursor.fields()?;
    let default = ManagementSettings::default();
    let enabled = fields.with_default("enabled", ValueCursor::flag, true);
    let management = ManagementSettings {
        allow: fields.optional("allow", allowed_servers),
        servers: fields.with_default("servers", ValueCursor::count, default.servers),
    };
    fields.finish();
    Some(enabled.then_some(management))
}

fn allowed_servers(cursor: ValueCursor<'_>) -> Option<AllowedServers> {
    let mut fields = cursor.fields()?;
    let commands = |cursor: ValueCursor<'_>| cursor.list(|item| item.parse(formats::command));
    let hosts = |cursor: ValueCursor<'_>| cursor.list(|item| item.parse(formats::host_pattern));
    let variable = |text: &str| formats::variable_name(text).map(|()| text.to_owned());
    let env = |cursor: ValueCursor<'_>| cursor.list(|item| item.parse(variable));
    let allowed = AllowedServers {
        commands: fields.with_default("commands", commands, Vec::new()),
        hosts: fields.with_default("hosts", hosts, Vec::new()),
        env: fields.with_default("env", env, Vec::new()),
    };
    fields.finish();
    Some(allowed)
}
