//! The reader of `builtins.mcp`.

use crate::{cursor::Cursor, forms};

/// Which MCP servers agents may add while the gateway runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementSettings {
    /// `allow`: which servers. None: no server can be added.
    pub allow: Option<AllowedServers>,
    /// `servers`: how many there may be that were added. 50.
    pub servers: usize,
}

/// What servers may be that agents add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedServers {
    /// `commands`: the programs that may be started, as they are named: nothing stands for others. None.
    pub commands: Vec<String>,
    /// `hosts`: the hosts that may be connected to, with or without a port. `*.` in front stands for any names before it. None.
    pub hosts: Vec<String>,
    /// `env`: the variables that may be set for a program. None.
    pub env: Vec<String>,
}

impl Default for ManagementSettings {
    fn default() -> Self {
        Self { allow: None, servers: 50 }
    }
}

/// Reads the object `mcp`; one that is switched off is none.
pub(super) fn management(cursor: Cursor<'_>) -> Option<Option<ManagementSettings>> {
    let mut fields = cursor.fields()?;
    let default = ManagementSettings::default();
    let enabled = fields.with_default("enabled", Cursor::flag, true);
    let management = ManagementSettings {
        allow: fields.optional("allow", allowed),
        servers: fields.with_default("servers", Cursor::count, default.servers),
    };
    fields.finish();
    Some(enabled.then_some(management))
}

fn allowed(cursor: Cursor<'_>) -> Option<AllowedServers> {
    let mut fields = cursor.fields()?;
    let commands = |cursor: Cursor<'_>| cursor.list(|item| item.parse(forms::command));
    let hosts = |cursor: Cursor<'_>| cursor.list(|item| item.parse(forms::host_pattern));
    let variable = |text: &str| forms::variable_name(text).map(|()| text.to_owned());
    let env = |cursor: Cursor<'_>| cursor.list(|item| item.parse(variable));
    let allowed = AllowedServers {
        commands: fields.with_default("commands", commands, Vec::new()),
        hosts: fields.with_default("hosts", hosts, Vec::new()),
        env: fields.with_default("env", env, Vec::new()),
    };
    fields.finish();
    Some(allowed)
}
