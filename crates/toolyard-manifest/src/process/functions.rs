//! The section `functions`.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::access::ScopePattern;

use crate::{
    cursor::ValueCursor,
    field_type::{
        CountField, CustomField, DurationField, FieldType, FlagField, NonEmptyListField, SizeField,
        TextField, TimeoutField,
    },
    formats,
    handler::SecretString,
    object_schema::SchemaDefinitions,
    section::{nested, section},
};

section! {
    /// `functions` of a `Toolyard` document: the hosting of functions.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FunctionHosting: Default = "functions" {
        /// Variables for functions, by the name that functions use as `${NAME}` in their environment. Functions see
        /// nothing else of the gateway's environment.
        pub lend: Vec<(String, VariableGrant)> = "lend", CustomField { read: lend, schema: lend_schema },
            described Vec::new();
        /// Maximum number of worker processes for all functions.
        ///
        /// Each takes some MB while idle.
        pub workers: usize = "workers", CountField, default 64;
        /// Maximum number of waiting calls per version; more are refused as overload.
        pub queued_calls: usize = "queuedCalls", CountField, default 256;
        /// Lifetime of a worker process without calls.
        pub idle: Duration = "idle", TimeoutField, default Duration::from_secs(5 * 60);
        /// Calls after which a worker process is replaced, to free what Python code accumulates.
        pub calls_per_worker: usize = "callsPerWorker", CountField, default 1000;
        /// Give Python functions that request network access the network of this machine, including services on its
        /// loopback interface such as this gateway. If false, such functions are refused. `fetch` in JavaScript and Lua
        /// never needs it.
        pub host_network: bool = "hostNetwork", FlagField, default false;
        /// Maximum number of log entries of functions that wait to be written; more are dropped and counted.
        pub queued_logs: usize = "queuedLogs", CountField, default 10_000;
        /// Lifetime of function logs; `0s` keeps them forever.
        pub log_retention: Duration = "logRetention", DurationField,
            default Duration::from_secs(30 * 24 * 60 * 60);
        /// Maximum size of function logs in the store. Beyond it the oldest entries are removed, which the log states.
        /// Checked once a minute.
        pub log_bytes: usize = "logBytes", SizeField(1 << 20), default 256 << 20;
    }
}

section! {
    /// An entry of `lend`: a variable, and the functions that may use it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct VariableGrant = "lentVariable" {
        /// Value of the variable.
        pub value: SecretString = "value",
            CustomField { read: |cursor| cursor.secret(), schema: |_| json!({"type": "string"}) },
            required;
        /// Patterns of the ids of functions that may use it, with `*` for any characters. No other function gets the
        /// value.
        pub functions: Vec<ScopePattern> = "functions",
            NonEmptyListField(
                TextField::new(formats::function_pattern)
                    .pattern("^[A-Za-z0-9._*-]{1,128}$")
                    .examples(&["weather", "geo-*"])
            ),
            required;
    }
}

fn lend(cursor: ValueCursor<'_>) -> Option<Vec<(String, VariableGrant)>> {
    cursor.entries(formats::variable_name, variable_grant)
}

fn lend_schema(definitions: &mut SchemaDefinitions) -> Value {
    json!({
        "default": {},
        "type": "object",
        "propertyNames": {"pattern": r"^[^=\x00]+$"},
        "additionalProperties": nested::<VariableGrant>().schema(definitions),
    })
}

fn variable_grant(cursor: ValueCursor<'_>) -> Option<VariableGrant> {
    const HINT: &str = "list the functions that may use the variable: `{value: \"${NAME}\", functions: [weather, \"geo-*\"]}`";
    if cursor.is_text() {
        cursor.report_wrong_type("an object", Some(HINT));
        return None;
    }
    nested().read(cursor)
}
