//! A server in the making.

use std::fmt;
use std::sync::Arc;

use toolyard_mcp::server::ServerInfo;

use crate::backend::Yard;
use crate::completion::Completer;
use crate::error::RegisterError;
use crate::handle::ServerHandle;
use crate::handler::ToolHandler;
use crate::options::ServerOptions;
use crate::prompt::{Prompt, PromptHandler};
use crate::resource::{Resource, ResourceHandler, ResourceTemplate, TemplateHandler};
use crate::tool::Tool;

/// An MCP server: what it is called, what it offers, and then how it is served.
///
/// Lists are in the order of registration. Registering fails at once where clients would stumble later.
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
    pub(crate) yard: Arc<Yard>,
    pub(crate) info: ServerInfo,
    pub(crate) options: ServerOptions,
    /// What seals the state of rounds, where somebody has chosen it.
    pub(crate) key: Option<[u8; 32]>,
}

impl Server {
    /// A server of this name and version that offers nothing yet.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("MyToolServer", "1.0.0");
    /// ```
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = ServerInfo { name: name.into(), version: version.into(), ..ServerInfo::default() };
        Self { yard: Arc::new(Yard::new()), info, options: ServerOptions::default(), key: None }
    }

    /// Its name for people.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("weather", "1.0.0").title("Weather of the world");
    /// ```
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What a model should know before it uses the tools.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// let server = Server::new("weather", "1.0.0").instructions("Look the city up before you ask for its weather.");
    /// ```
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.info.instructions = Some(instructions.into());
        self
    }

    /// What clients may take.
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

    /// The key that seals the state of calls which ask their client and go on when it answers (see
    /// [`InputRequired`](crate::InputRequired)). It has to be as hard to guess as 32 random bytes are, and the same
    /// in all processes that serve the same clients. Without it each server makes a key of its own.
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

    /// Adds a tool whose schemas are those of its handler. See [`ToolHandler`] for what a handler may look like.
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
    /// As [`Server::register_tool`].
    pub fn tool<M>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: impl ToolHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.register_tool(Tool::new(name, description), handler)
    }

    /// Adds a tool with all that can be said of it.
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
    /// When the name is empty, taken, or one that clients would refuse; when a schema is not one of an object, or no
    /// schema at all.
    pub fn register_tool<M>(self, tool: Tool, handler: impl ToolHandler<M>) -> Result<Self, RegisterError> {
        self.yard.add_tool(tool, handler)?;
        Ok(self)
    }

    /// Adds a prompt, whose arguments are those of its handler. See [`PromptHandler`] for what a handler may look
    /// like.
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
    /// As [`Server::register_prompt`].
    pub fn prompt<M>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: impl PromptHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.register_prompt(Prompt::new(name, description), handler)
    }

    /// Adds a prompt with all that can be said of it.
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
    /// When the name is empty or taken.
    pub fn register_prompt<M>(
        self,
        prompt: Prompt,
        handler: impl PromptHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.yard.add_prompt(prompt, handler)?;
        Ok(self)
    }

    /// Adds a resource: data that clients read by its URI. See [`ResourceHandler`] for what a handler may look like.
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
    /// When the URI is empty, taken, or none.
    pub fn resource<M>(
        self,
        resource: Resource,
        handler: impl ResourceHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.yard.add_resource(&resource, handler)?;
        Ok(self)
    }

    /// Adds a template (RFC 6570), which stands for more resources than can be listed. See [`TemplateHandler`] for
    /// what a handler may look like.
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
    /// When the template is empty, taken, or none.
    pub fn resource_template<M>(
        self,
        template: ResourceTemplate,
        handler: impl TemplateHandler<M>,
    ) -> Result<Self, RegisterError> {
        self.yard.add_template(&template, handler)?;
        Ok(self)
    }

    /// Completes an argument of a prompt while the user types. See [`Completer`] for what a completer may look like.
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
    /// When there is no such prompt, or it has no such argument.
    pub fn complete_prompt<M>(
        self,
        prompt: &str,
        argument: &str,
        completer: impl Completer<M>,
    ) -> Result<Self, RegisterError> {
        self.yard.complete_prompt(prompt, argument, completer)?;
        Ok(self)
    }

    /// Completes a variable of a template of resources while the user types.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceTemplate, Server, Uri};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let template = ResourceTemplate::new("db:///{table}", "table");
    /// let server = Server::new("db", "1.0.0")
    ///     .resource_template(template, async |uri: Uri| uri.0)?
    ///     .complete_resource("db:///{table}", "table", async |_typed: String| vec!["users", "orders"])?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When there is no such template, or it has no such variable.
    pub fn complete_resource<M>(
        self,
        uri_template: &str,
        variable: &str,
        completer: impl Completer<M>,
    ) -> Result<Self, RegisterError> {
        self.yard.complete_resource(uri_template, variable, completer)?;
        Ok(self)
    }

    /// A handle, to register and remove while the server serves, and to end it. A server that somebody holds a handle
    /// of says that it has tools, prompts and resources, whatever it has: any of them may come.
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
        ServerHandle::new(&self.yard)
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
