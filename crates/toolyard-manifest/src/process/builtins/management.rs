//! The section `builtins.mcp`.

use crate::{
    field_type::{CountField, ListField, TextField},
    formats,
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
