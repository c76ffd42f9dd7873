//! What is published of a tool, and what a handler without typed arguments is given.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolyard_core::Object;

use crate::failure::ToolFailure;
use crate::handler;
use crate::icon::Icon;
use crate::setters::setters;

/// What is published of a tool, for [`Server::register_tool`](crate::Server::register_tool).
///
/// What is `None` or empty is left out; a schema that is not given is the handler's.
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
    /// What it is called by: 1 to 128 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What a model should know before it uses the tool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The schema of its arguments: JSON Schema 2020-12 unless it says otherwise. Arguments that do not fit never
    /// reach the handler.
    pub input_schema: Option<Value>,
    /// What arguments are held to, where that is more than what is published.
    #[serde(skip)]
    pub accepted_schema: Option<Value>,
    /// The schema of its structured content. A result that does not fit one that was given here is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints on what it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Pictures for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Whether it may run as a task.
    #[serde(rename = "execution", skip_serializing_if = "TaskSupport::is_forbidden")]
    pub task: TaskSupport,
    /// What else there is to say, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// Whether a tool may run as a task: its client gets a handle at once, and the result later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "taskSupport", rename_all = "lowercase")]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// When the client wants it.
    Optional,
    /// Always.
    Required,
}

impl TaskSupport {
    const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden)
    }
}

/// Hints on what a tool does. Clients use them to decide what to ask the user; none of them is a promise.
///
/// ```
/// use toolyard_sdk::ToolAnnotations;
///
/// let search = ToolAnnotations::new().read_only(true).open_world(true);
/// let delete = ToolAnnotations::new().destructive(true).idempotent(true);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolAnnotations {
    /// A name for people. [`Tool::title`] has taken its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes nothing. False unless it is said.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// May delete or overwrite. True unless it is said.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// The same call again changes nothing more. False unless it is said.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Reaches beyond what it knows of, such as the web. True unless it is said.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// No hints.
    ///
    /// ```
    /// # use toolyard_sdk::ToolAnnotations;
    /// assert_eq!(ToolAnnotations::new(), ToolAnnotations::default());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it changes nothing.
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

    /// Whether it may delete or overwrite.
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

    /// Whether the same call again changes nothing more.
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

    /// Whether it reaches beyond what it knows of.
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
    /// A tool of this name. The description is for the model.
    ///
    /// ```
    /// # use toolyard_sdk::Tool;
    /// let tool = Tool::new("echo", "Returns the text that it is given.");
    /// ```
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), ..Self::default() }
    }

    setters! {
        /// Its name for people.
        ///
        /// ```
        /// # use toolyard_sdk::Tool;
        /// let tool = Tool::new("echo", "Returns the text that it is given.").title("Echo");
        /// ```
        text title;
    }

    /// The schema of its arguments, in the place of the handler's.
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

    /// What arguments are held to in the place of the published schema: for a tool that takes more than it asks for, such as
    /// other names of its arguments, and whose handler says what is wrong in its own words.
    ///
    /// ```
    /// # use toolyard_sdk::Tool;
    /// # use serde_json::json;
    /// let tool = Tool::new("greet", "Greets somebody.")
    ///     .input_schema(json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}))
    ///     .accepted_schema(json!({"type": "object"}));
    /// ```
    #[must_use]
    pub fn accepted_schema(mut self, schema: Value) -> Self {
        self.accepted_schema = Some(schema);
        self
    }

    /// The schema of its structured content, in the place of the handler's. Results are checked against it.
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
        /// Hints on what it does.
        ///
        /// ```
        /// # use toolyard_sdk::{Tool, ToolAnnotations};
        /// let tool = Tool::new("search", "Searches the web.").annotations(ToolAnnotations::new().read_only(true));
        /// ```
        some annotations: ToolAnnotations;

        /// One more picture for it.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, Tool};
        /// let tool = Tool::new("search", "Searches the web.").icon(Icon::new("https://example.com/lens.svg"));
        /// ```
        icon;
    }

    /// Whether it may run as a task.
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
        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own.
        ///
        /// ```
        /// # use toolyard_sdk::Tool;
        /// let tool = Tool::new("search", "Searches the web.").meta("example.com/owner", "team-search");
        /// ```
        meta;
    }
}

/// A call with its arguments as they came, for handlers that read them by themselves.
///
/// The arguments have passed the tool's input schema.
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
    /// The tool's name.
    pub name: String,
    /// The arguments, as text that was not changed. Empty where there are none.
    pub arguments: Object,
    /// What the client said of the request.
    pub meta: Object,
}

impl ToolCall {
    /// The arguments as a value of type `T`.
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
    /// When they do not fit, with a message for the model.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolFailure> {
        handler::parse(&self.arguments.to_json()).map_err(|problem| {
            // The same words as for arguments that do not fit the schema.
            ToolFailure::new(format!("Invalid arguments: {problem}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_published() {
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
