//! The section `builtins.mcp`.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    cursor::ValueCursor,
    field_type::{CountField, FieldType, FileField, FlagField, ListField, TextField, WritableField},
    formats,
    object_schema::SchemaDefinitions,
    section::{nested, section},
};

section! {
    /// MCP servers that agents may add at run time.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ManagementSettings: Default = "management" {
        /// Servers that agents may add. Default: none.
        pub allow: Option<AllowedServers> = "allow", nested::<AllowedServers>(), optional;
        /// Maximum number of added servers; more are refused.
        pub servers: usize = "servers", CountField, default 50;
        /// File with servers in the form `mcpServers` of MCP clients, such as an `mcp.json` on a data volume. They run
        /// beside those of the manifest. Edits apply without a restart, and servers that agents add are written to it
        /// instead of the store. It need not exist. Default: none.
        pub file: Option<PathBuf> = "file", FileField, optional;
        /// List the servers of a bridge on the message bus, `toolyard bridge`, as well. Agents then add and remove servers
        /// there, where the bridge's own `allow` applies.
        pub bridge: bool = "bridge", BridgeField, default false;
    }
}

/// A switch that needs the message bus.
struct BridgeField;

impl FieldType for BridgeField {
    type Value = bool;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<bool> {
        FlagField.read(cursor)
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        FlagField.schema(definitions)
    }
}

impl WritableField for BridgeField {
    fn write(&self, value: &bool) -> Value {
        FlagField.write(value)
    }
}

section! {
    /// The servers that agents may add.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AllowedServers: Default = "allowedServers" {
        /// Permitted programs, which are compared exactly. Agents choose the arguments, so that they can do anything
        /// that the program can.
        pub commands: Vec<String> = "commands", ListField(TextField::new(formats::command).examples(&["uvx"])),
            described Vec::new();
        /// Permitted hosts, with or without a port. A leading `*.` matches any subdomain.
        pub hosts: Vec<String> = "hosts",
            ListField(
                TextField::new(formats::host_pattern)
                    .examples(&["mcp.example.com", "*.example.com", "localhost:3000"])
            ),
            described Vec::new();
        /// Environment variables that may be set for a program.
        pub env: Vec<String> = "env",
            ListField(TextField::new(|text| formats::variable_name(text).map(|()| text.to_owned()))),
            described Vec::new();
    }
}
