//! The builder of a server.

use std::fmt;
use std::sync::Arc;

use toolyard_mcp::server::ServerInfo;

use crate::backend::ServerBackend;
use crate::completion::Completer;
use crate::error::RegisterError;
use crate::handle::ServerHandle;
use crate::handler::ToolHandler;
use crate::options::ServerOptions;
use crate::prompt::{Prompt, PromptHandler};
use crate::resource::{Resource, ResourceHandler, ResourceTemplate, TemplateHandler};
use crate::tool::Tool;

/// An MCP server: its name, its tools, prompts and resources, and the methods to serve it.
///
/// Lists are in the order of registration. Registration fails at once if clients could not use the item.
///
/// ```no_run
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard_sdk::{Result, Server};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct EchoArgs {
///     /// What to say
///     text: String,
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<()> {
///     Server::new("echo", env!("CARGO_PKG_VERSION"))
///         .instructions("Use `echo` to hear what you say.")
///         .tool("echo", "Returns the text that it is given.", async |args: EchoArgs| args.text)?
///         .serve_stdio()
///         .await
/// }
/// ```
#[must_use = "a server does nothing until it is served"]
pub struct Server {
    pub(crate) backend: Arc<ServerBackend>,
    pub(crate) info: ServerInfo,
    pub(crate) options: ServerOptions,
    /// The key that seals the state of multi-round-trip calls, if one was set.
    pub(crate) key: Option<[u8; 32]>,
    /// `true` if tools are published without `$schema`.
    pub(crate) omits_dialect: bool,
    pub(crate) refuses_unknown_arguments: bool,
}

impl Server {
    /// A server with a name and a version, without any items.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("MyToolServer", "1.0.0");
    /// ```
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = ServerInfo { name: name.into(), version: version.into(), ..ServerInfo::default() };
        let (backend, options) = (Arc::new(ServerBackend::new()), ServerOptions::default());
        Self { backend, info, options, key: None, omits_dialect: false, refuses_unknown_arguments: false }
    }

    /// Sets the display name.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("weather", "1.0.0").title("Weather of the world");
    /// ```
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the instructions for the model.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("weather", "1.0.0").instructions("Look the city up before you ask for its weather.");
    /// ```
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.info.instructions = Some(instructions.into());
        self
    }

    /// Sets the limits.
    ///
    /// ```
    /// # use toolyard_sdk::{Server, ServerOptions};
    /// let options = ServerOptions { concurrent_calls: 8, ..ServerOptions::default() };
    /// let server = Server::new("weather", "1.0.0").options(options);
    /// ```
    pub fn options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the key that seals the state of multi-round-trip calls (see [`InputRequired`](crate::InputRequired)). It
    /// must be as hard to guess as 32 random bytes, and the same in all processes that serve the same clients. By
    /// default each server generates its own key.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # fn secret() -> [u8; 32] { [7; 32] }
    /// let server = Server::new("weather", "1.0.0").state_key(secret());
    /// ```
    pub const fn state_key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(key);
        self
    }

    /// Leaves `$schema` out of the argument schemas of the tools that are added from now on, which saves a model some
    /// tokens for each of them. MCP presumes JSON Schema 2020-12 then.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("weather", "1.0.0").omit_schema_dialect();
    /// ```
    pub const fn omit_schema_dialect(mut self) -> Self {
        self.omits_dialect = true;
        self
    }

    /// Refuses calls with arguments that the schema of the tool does not have, and names them. Otherwise they are
    /// ignored, unless the type of the arguments has `#[serde(deny_unknown_fields)]`. Applies to the tools that are
    /// added afterwards; the published schemas stay the same.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("weather", "1.0.0").refuse_unknown_arguments();
    /// ```
    pub const fn refuse_unknown_arguments(mut self) -> Self {
        self.refuses_unknown_arguments = true;
        self
    }

    /// Adds a tool with the schemas of its handler. See [`ToolHandler`] for the signature of a handler.
    ///
    /// ```
    /// # use toolyard_sdk::{Server, ToolFailure};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct ReverseArgs {
    ///     /// The string to reverse
    ///     input: String,
    /// }
    ///
    /// async fn reverse(args: ReverseArgs) -> Result<String, ToolFailure> {
    ///     Ok(args.input.chars().rev().collect())
    /// }
    ///
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let server = Server::new("strings", "1.0.0").tool("reverse_string", "Reverses the input string.", reverse)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Server::register_tool`].
    pub fn tool<M>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: impl ToolHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.register_tool(Tool::new(name, description), handler)
    }

    /// Adds a tool with a full definition.
    ///
    /// ```
    /// # use toolyard_sdk::{Server, Tool, ToolAnnotations, ToolCall, ToolFailure, schema_of};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct MultiplyArgs { x: f64, y: f64 }
    /// async fn multiply(call: ToolCall) -> Result<String, ToolFailure> {
    ///     let args = call.arguments::<MultiplyArgs>()?;
    ///     Ok(format!("{:.6}", args.x * args.y))
    /// }
    ///
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let tool = Tool::new("multiply", "Multiplies two numbers.")
    ///     .input_schema(schema_of::<MultiplyArgs>())
    ///     .annotations(ToolAnnotations::new().read_only(true));
    /// let server = Server::new("calculator", "1.0.0").register_tool(tool, multiply)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the name is empty, already registered, or one that clients would reject; if a schema is invalid or does not
    /// describe an object.
    pub fn register_tool<M>(self, tool: Tool, handler: impl ToolHandler<M>) -> Result<Self, RegisterError> {
        let omits_dialect = self.omits_dialect || tool.omits_dialect;
        let refuses_unknown_arguments = self.refuses_unknown_arguments || tool.refuses_unknown_arguments;
        self.backend.add_tool(Tool { omits_dialect, refuses_unknown_arguments, ..tool }, handler)?;
        Ok(self)
    }

    /// Adds a prompt with the arguments of its handler. See [`PromptHandler`] for the signature of a handler.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct ReviewArgs {
    ///     /// The code to review
    ///     code: String,
    /// }
    ///
    /// async fn review(args: ReviewArgs) -> String {
    ///     format!("Please review this code:\n\n{}", args.code)
    /// }
    ///
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let server = Server::new("reviews", "1.0.0").prompt("review", "Reviews code.", review)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Server::register_prompt`].
    pub fn prompt<M>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: impl PromptHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.register_prompt(Prompt::new(name, description), handler)
    }

    /// Adds a prompt with a full definition.
    ///
    /// ```
    /// # use toolyard_sdk::{Prompt, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let prompt = Prompt::new("greet", "Greets.").title("A friendly greeting");
    /// let server = Server::new("greetings", "1.0.0").register_prompt(prompt, || "Say hello.")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the name is empty or already registered.
    pub fn register_prompt<M>(
        self,
        prompt: Prompt,
        handler: impl PromptHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.backend.add_prompt(prompt, handler)?;
        Ok(self)
    }

    /// Adds a resource: data that clients read by URI. See [`ResourceHandler`] for the signature of a handler.
    ///
    /// ```
    /// # use toolyard_sdk::{Resource, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let resource = Resource::new("config:///app", "config").mime_type("application/json");
    /// let server = Server::new("app", "1.0.0").resource(resource, async || r#"{"debug": false}"#)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the URI is empty, invalid or already registered.
    pub fn resource<M>(
        self,
        resource: Resource,
        handler: impl ResourceHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.backend.add_resource(&resource, handler)?;
        Ok(self)
    }

    /// Adds a resource template (RFC 6570), for resources that are too many to list. See [`TemplateHandler`] for the
    /// signature of a handler.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceTemplate, Server};
    /// #[derive(serde::Deserialize)]
    /// struct Table {
    ///     table: String,
    ///     row: u64,
    /// }
    ///
    /// async fn read(Table { table, row }: Table) -> String {
    ///     format!("row {row} of {table}")
    /// }
    ///
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let template = ResourceTemplate::new("db:///{table}/{row}", "row");
    /// let server = Server::new("db", "1.0.0").resource_template(template, read)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the template is empty, invalid or already registered.
    pub fn resource_template<M>(
        self,
        template: ResourceTemplate,
        handler: impl TemplateHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.backend.add_template(&template, handler)?;
        Ok(self)
    }

    /// Adds a completer for an argument of a prompt. See [`Completer`] for the signature of a completer.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Args { language: String }
    /// # async fn review(args: Args) -> String { args.language }
    /// async fn languages(typed: String) -> Vec<String> {
    ///     let known = ["python", "perl", "rust"].into_iter();
    ///     known.filter(|name| name.starts_with(&typed)).map(str::to_owned).collect()
    /// }
    ///
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let server = Server::new("reviews", "1.0.0")
    ///     .prompt("review", "Reviews code.", review)?
    ///     .complete_prompt("review", "language", languages)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the prompt or the argument does not exist.
    pub fn complete_prompt<M>(
        self,
        prompt: &str,
        argument: &str,
        completer: impl Completer<M>,
    ) -> Result<Self, RegisterError> {
        self.backend.complete_prompt(prompt, argument, completer)?;
        Ok(self)
    }

    /// Adds a completer for a variable of a resource template.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceTemplate, ResourceUri, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let template = ResourceTemplate::new("db:///{table}", "table");
    /// let server = Server::new("db", "1.0.0")
    ///     .resource_template(template, async |uri: ResourceUri| uri.0)?
    ///     .complete_resource("db:///{table}", "table", async |_typed: String| vec!["users", "orders"])?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the template or the variable does not exist.
    pub fn complete_resource<M>(
        self,
        uri_template: &str,
        variable: &str,
        completer: impl Completer<M>,
    ) -> Result<Self, RegisterError> {
        self.backend.complete_resource(uri_template, variable, completer)?;
        Ok(self)
    }

    /// Returns a handle to register and remove items while the server serves, and to stop it. A server with a handle
    /// declares tools, prompts and resources even if it has none, because they may be added later.
    ///
    /// ```
    /// # use toolyard_sdk::{Server, Tool};
    /// # async fn run() -> toolyard_sdk::Result<()> {
    /// let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// let serving = tokio::spawn(server.serve_stdio());
    /// handle.add_tool(Tool::new("open", "Opens the door."), async || "open")?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle::new(&self.backend)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("info", &self.info)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
