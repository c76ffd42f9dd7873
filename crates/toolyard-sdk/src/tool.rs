//! Definitions of tools, and untyped calls.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolyard_core::Object;

use crate::failure::ToolFailure;
use crate::handler;
use crate::icon::Icon;
use crate::setters::setters;

/// The definition of a tool, for [`Server::register_tool`](crate::Server::register_tool).
///
/// Members that are `None` or empty are left out. Missing schemas are those of the handler.
///
/// ```
/// use toolyard_sdk::{Tool, ToolAnnotations, schema_of};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct MultiplyArgs { x: f64, y: f64 }
///
/// let tool = Tool::new("multiply", "Multiplies two numbers.")
///     .title("Multiply")
///     .input_schema(schema_of::<MultiplyArgs>())
///     .annotations(ToolAnnotations::new().read_only(true));
///
/// // The same, as a literal:
/// let tool = Tool {
///     name: "multiply".into(),
///     description: "Multiplies two numbers.".into(),
///     input_schema: Some(schema_of::<MultiplyArgs>()),
///     ..Tool::default()
/// };
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name for calls: 1 to 128 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The schema of the arguments: JSON Schema 2020-12 unless it declares another dialect. Arguments that do not fit
    /// never reach the handler.
    pub input_schema: Option<Value>,
    /// The schema that validates the arguments, if it accepts more than the published one.
    #[serde(skip)]
    pub accepted_schema: Option<Value>,
    /// Leaves `$schema` out of the published schema of the arguments. MCP presumes 2020-12 then.
    #[serde(skip)]
    pub omits_dialect: bool,
    /// Refuses arguments that the schema does not have, unless `accepted_schema` is set.
    #[serde(skip)]
    pub refuses_unknown_arguments: bool,
    /// The schema of the structured content. A result that does not fit an explicit schema is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints on the effects of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Icons of the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Support for running as a task.
    #[serde(rename = "execution", skip_serializing_if = "TaskSupport::is_forbidden")]
    pub task: TaskSupport,
    /// Additional metadata, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// Support for tasks: the client gets a handle at once, and the result later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "taskSupport", rename_all = "lowercase")]
pub enum TaskSupport {
    /// The tool never runs as a task.
    #[default]
    Forbidden,
    /// The tool runs as a task if the client requests it.
    Optional,
    /// The tool always runs as a task.
    Required,
}

impl TaskSupport {
    const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden)
    }
}

/// Hints on the effects of a tool. Clients use them to decide what to ask the user; they are not guarantees.
///
/// ```
/// use toolyard_sdk::ToolAnnotations;
///
/// let search = ToolAnnotations::new().read_only(true).open_world(true);
/// let delete = ToolAnnotations::new().destructive(true).idempotent(true);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolAnnotations {
    /// The display name; prefer [`Tool::title`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing. Default: `false`.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may delete or overwrite data. Default: `true`.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Repeating a call with the same arguments has no further effect. Default: `false`.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool interacts with external systems, such as the web. Default: `true`.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// Annotations without hints.
    ///
    /// ```
    /// # use toolyard_sdk::ToolAnnotations;
    /// assert_eq!(ToolAnnotations::new(), ToolAnnotations::default());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the tool changes nothing.
    ///
    /// ```
    /// # use toolyard_sdk::ToolAnnotations;
    /// assert_eq!(ToolAnnotations::new().read_only(true).read_only, Some(true));
    /// ```
    #[must_use]
    pub const fn read_only(mut self, hint: bool) -> Self {
        self.read_only = Some(hint);
        self
    }

    /// Sets whether the tool may delete or overwrite data.
    ///
    /// ```
    /// # use toolyard_sdk::ToolAnnotations;
    /// assert_eq!(ToolAnnotations::new().destructive(false).destructive, Some(false));
    /// ```
    #[must_use]
    pub const fn destructive(mut self, hint: bool) -> Self {
        self.destructive = Some(hint);
        self
    }

    /// Sets whether repeating a call has no further effect.
    ///
    /// ```
    /// # use toolyard_sdk::ToolAnnotations;
    /// assert_eq!(ToolAnnotations::new().idempotent(true).idempotent, Some(true));
    /// ```
    #[must_use]
    pub const fn idempotent(mut self, hint: bool) -> Self {
        self.idempotent = Some(hint);
        self
    }

    /// Sets whether the tool interacts with external systems.
    ///
    /// ```
    /// # use toolyard_sdk::ToolAnnotations;
    /// assert_eq!(ToolAnnotations::new().open_world(false).open_world, Some(false));
    /// ```
    #[must_use]
    pub const fn open_world(mut self, hint: bool) -> Self {
        self.open_world = Some(hint);
        self
    }
}

impl Tool {
    /// A tool with a name and a description for the model.
    ///
    /// ```
    /// # use toolyard_sdk::Tool;
    /// let tool = Tool::new("echo", "Returns the text that it is given.");
    /// ```
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), ..Self::default() }
    }

    setters! {
        /// Sets the display name.
        ///
        /// ```
        /// # use toolyard_sdk::Tool;
        /// let tool = Tool::new("echo", "Returns the text that it is given.").title("Echo");
        /// ```
        text title;
    }

    /// Sets the schema of the arguments, instead of that of the handler.
    ///
    /// ```
    /// # use toolyard_sdk::Tool;
    /// # use serde_json::json;
    /// let tool = Tool::new("echo", "Returns the text that it is given.").input_schema(json!({
    ///     "type": "object",
    ///     "properties": {"text": {"type": "string", "maxLength": 1000}},
    ///     "required": ["text"],
    /// }));
    /// ```
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Sets the schema that validates the arguments, instead of the published one: for a tool that accepts more than it
    /// publishes, such as alternative names of its arguments, and whose handler reports errors itself.
    ///
    /// ```
    /// # use toolyard_sdk::Tool;
    /// # use serde_json::json;
    /// let tool = Tool::new("greet", "Greets a person.")
    ///     .input_schema(json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}))
    ///     .accepted_schema(json!({"type": "object"}));
    /// ```
    #[must_use]
    pub fn accepted_schema(mut self, schema: Value) -> Self {
        self.accepted_schema = Some(schema);
        self
    }

    /// Sets the schema of the structured content, instead of that of the handler. Results are validated against it.
    ///
    /// ```
    /// # use toolyard_sdk::Tool;
    /// # use serde_json::json;
    /// let tool = Tool::new("add", "Adds two numbers.").output_schema(json!({
    ///     "type": "object",
    ///     "properties": {"sum": {"type": "number"}},
    ///     "required": ["sum"],
    /// }));
    /// ```
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    setters! {
        /// Sets hints on the effects of the tool.
        ///
        /// ```
        /// # use toolyard_sdk::{Tool, ToolAnnotations};
        /// let tool = Tool::new("search", "Searches the web.").annotations(ToolAnnotations::new().read_only(true));
        /// ```
        some annotations: ToolAnnotations;

        /// Adds an icon.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, Tool};
        /// let tool = Tool::new("search", "Searches the web.").icon(Icon::new("https://example.com/lens.svg"));
        /// ```
        icon;
    }

    /// Sets the support for running as a task.
    ///
    /// ```
    /// # use toolyard_sdk::{TaskSupport, Tool};
    /// let tool = Tool::new("render", "Renders a film.").task(TaskSupport::Optional);
    /// ```
    #[must_use]
    pub const fn task(mut self, task: TaskSupport) -> Self {
        self.task = task;
        self
    }

    setters! {
        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own
        /// names.
        ///
        /// ```
        /// # use toolyard_sdk::Tool;
        /// let tool = Tool::new("search", "Searches the web.").meta("example.com/owner", "team-search");
        /// ```
        meta;
    }
}

/// A call with untyped arguments, for handlers that deserialize them.
///
/// The arguments are valid against the tool's input schema.
///
/// ```
/// use serde::Deserialize;
/// use toolyard_sdk::{Server, Tool, ToolCall, ToolFailure, schema_of};
///
/// #[derive(Deserialize, schemars::JsonSchema)]
/// struct MultiplyArgs {
///     x: f64,
///     y: f64,
/// }
///
/// async fn multiply(call: ToolCall) -> Result<String, ToolFailure> {
///     let args = call.arguments::<MultiplyArgs>()?;
///     Ok(format!("{:.6}", args.x * args.y))
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let tool = Tool::new("multiply", "Multiplies two numbers.").input_schema(schema_of::<MultiplyArgs>());
/// let server = Server::new("calculator", "1.0.0").register_tool(tool, multiply)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The unchanged JSON of the arguments. Empty if there are none.
    pub arguments: Object,
    /// The request's `_meta`.
    pub meta: Object,
}

impl ToolCall {
    /// Deserializes the arguments as a `T`.
    ///
    /// ```
    /// # use toolyard_sdk::{ToolCall, ToolFailure};
    /// fn count(call: ToolCall) -> Result<String, ToolFailure> {
    ///     let arguments = call.arguments::<serde_json::Map<String, serde_json::Value>>()?;
    ///     Ok(format!("{} arguments", arguments.len()))
    /// }
    /// # let _ = count;
    /// ```
    ///
    /// # Errors
    /// If they do not fit, with a message for the model.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolFailure> {
        handler::parse(&self.arguments.to_json()).map_err(|problem| {
            // The same text as for arguments that do not fit the schema.
            ToolFailure::new(format!("Invalid arguments: {problem}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definition_is_serialized_for_clients() {
        let bare = Tool { input_schema: Some(json!({"type": "object"})), ..Tool::new("a", "") };
        assert_eq!(
            serde_json::to_value(&bare).unwrap(),
            json!({"name": "a", "inputSchema": {"type": "object"}})
        );
        let full = bare
            .title("A")
            .accepted_schema(json!({"type": "object", "minProperties": 1}))
            .output_schema(json!({"type": "object"}))
            .annotations(ToolAnnotations::new().read_only(true).open_world(false))
            .icon(Icon::new("data:,").size("any"))
            .task(TaskSupport::Optional)
            .meta("a/b", 1);
        insta::assert_snapshot!(serde_json::to_string(&full).unwrap(), @r#"{"name":"a","title":"A","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false},"icons":[{"src":"data:,","sizes":["any"]}],"execution":{"taskSupport":"optional"},"_meta":{"a/b":1}}"#);
    }
}
