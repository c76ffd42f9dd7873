//! Changes to a server that serves.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::backend::Yard;
use crate::completion::{self, Completer};
use crate::error::RegisterError;
use crate::handler::ToolHandler;
use crate::prompt::{Prompt, PromptHandler};
use crate::register;
use crate::resource::{Resource, ResourceHandler, ResourceTemplate, TemplateHandler};
use crate::tool::Tool;

/// Registers and removes while the server serves. Clients are told that the list has changed.
///
/// A handle is cheap to clone, and does not keep the server: handlers may hold one.
///
/// ```
/// use toolyard_sdk::{RegisterError, Server, ServerHandle, Tool, ToolFailure};
///
/// fn unlock(handle: ServerHandle) -> Result<String, ToolFailure> {
///     let tool = Tool::new("open", "Opens the door.");
///     handle.add_tool(tool, || "the door is open")?;
///     Ok("the tool `open` is there now".to_owned())
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let server = Server::new("door", "1.0.0");
/// let handle = server.handle();
/// let server = server.tool("unlock", "Unlocks the door.", move || unlock(handle))?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ServerHandle {
    yard: Weak<Yard>,
}

impl ServerHandle {
    pub(crate) fn new(yard: &Arc<Yard>) -> Self {
        Self { yard: Arc::downgrade(yard) }
    }

    /// Adds a tool, behind all others.
    ///
    /// ```
    /// # use toolyard_sdk::{Server, Tool};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_tool(Tool::new("open", "Opens the door."), async || "open")?;
    /// assert!(handle.add_tool(Tool::new("open", "Opens it."), async || "open").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Server::register_tool`](crate::Server::register_tool), and when the server has ended.
    pub fn add_tool<M>(&self, tool: Tool, handler: impl ToolHandler<M>) -> Result<(), RegisterError> {
        self.yard()?.add_tool(tool, handler)
    }

    /// Takes a tool off the list; says whether it was there. Calls of it that run go on.
    ///
    /// ```
    /// # use toolyard_sdk::{Server, Tool};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0").tool("open", "Opens the door.", async || "open")?;
    /// let handle = server.handle();
    /// assert!(handle.remove_tool("open"));
    /// assert!(!handle.remove_tool("open"));
    /// # Ok(()) }
    /// ```
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(|yard| yard.change(|offered| offered.tools.remove(name)).is_ok())
    }

    /// Adds a prompt, behind all others.
    ///
    /// ```
    /// # use toolyard_sdk::{Prompt, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_prompt(Prompt::new("greet", "Greets who comes in."), async || "Say hello.")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Server::register_prompt`](crate::Server::register_prompt), and when the server has ended.
    pub fn add_prompt<M>(&self, prompt: Prompt, handler: impl PromptHandler<M>) -> Result<(), RegisterError> {
        self.yard()?.add_prompt(prompt, handler)
    }

    /// Takes a prompt off the list, with its completers; says whether it was there.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// assert!(!server.handle().remove_prompt("greet"));
    /// ```
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(|yard| yard.change(|offered| offered.prompts.remove(name)).is_ok())
    }

    /// Completes an argument of a prompt while the user types.
    ///
    /// ```
    /// # use toolyard_sdk::{Prompt, PromptArgument, Server, ServerHandle};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Greeting {
    ///     language: String,
    /// }
    ///
    /// # fn add(handle: &ServerHandle) -> toolyard_sdk::Result<()> {
    /// let greet = |args: Greeting| format!("Say hello in {}.", args.language);
    /// handle.add_prompt(Prompt::new("greet", "Greets who comes in."), greet)?;
    /// handle.complete_prompt("greet", "language", async |_typed: String| ["English", "French"])?;
    /// # Ok(()) }
    /// # let server = Server::new("door", "1.0.0");
    /// # add(&server.handle()).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Server::complete_prompt`](crate::Server::complete_prompt), and when the server has ended.
    pub fn complete_prompt<M>(
        &self,
        prompt: &str,
        argument: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        self.yard()?.complete_prompt(prompt, argument, completer)
    }

    /// Adds a resource, behind all others.
    ///
    /// ```
    /// # use toolyard_sdk::{Resource, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_resource(Resource::new("door:///state", "state"), async || "open")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Server::resource`](crate::Server::resource), and when the server has ended.
    pub fn add_resource<M>(
        &self,
        resource: Resource,
        handler: impl ResourceHandler<M>,
    ) -> Result<(), RegisterError> {
        self.yard()?.add_resource(&resource, handler)
    }

    /// Takes a resource off the list; says whether it was there. Who follows it is told that it has changed.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// assert!(!server.handle().remove_resource("door:///state"));
    /// ```
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(|yard| {
            let removed = yard.change(|offered| offered.resources.remove(uri)).is_ok();
            if removed {
                yard.updated(uri);
            }
            removed
        })
    }

    /// Adds a template of resources, behind all others.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceTemplate, Server, Uri};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_template(ResourceTemplate::new("door:///{name}", "door"), async |uri: Uri| uri.0)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Server::resource_template`](crate::Server::resource_template), and when the server has ended.
    pub fn add_template<M>(
        &self,
        template: ResourceTemplate,
        handler: impl TemplateHandler<M>,
    ) -> Result<(), RegisterError> {
        self.yard()?.add_template(&template, handler)
    }

    /// Completes a variable of a template of resources while the user types.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceTemplate, Server, Uri};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_template(ResourceTemplate::new("door:///{name}", "door"), async |uri: Uri| uri.0)?;
    /// handle.complete_resource("door:///{name}", "name", async |_typed: String| ["front", "back"])?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Server::complete_resource`](crate::Server::complete_resource), and when the server has ended.
    pub fn complete_resource<M>(
        &self,
        uri_template: &str,
        variable: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        self.yard()?.complete_resource(uri_template, variable, completer)
    }

    /// Takes a template off the list, with its completers; says whether it was there.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// assert!(!server.handle().remove_template("door:///{name}"));
    /// ```
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.change(|yard| yard.change(|offered| offered.templates.remove(uri_template)).is_ok())
    }

    /// Ends serving, in whatever way it is served: streams end, and no more calls are taken. Calls that run may end,
    /// for as long as [`ServerOptions::drain`](crate::ServerOptions::drain) says where the server itself listens.
    ///
    /// An application with routes of [`Server::into_router`](crate::Server::into_router) has to call it before it
    /// waits for its connections to end: clients keep streams open for as long as they can.
    ///
    /// ```ignore
    /// let server = Server::new("door", "1.0.0").tool("open", "Opens the door.", || "open")?;
    /// let handle = server.handle();
    /// let app = axum::Router::new().nest("/door", server.into_router());
    /// axum::serve(TcpListener::bind("127.0.0.1:8080").await?, app)
    ///     .with_graceful_shutdown(async move {
    ///         let _ = tokio::signal::ctrl_c().await;
    ///         handle.stop();
    ///     })
    ///     .await?;
    /// ```
    pub fn stop(&self) {
        if let Some(yard) = self.yard.upgrade() {
            yard.stop();
        }
    }

    /// Tells clients that follow this resource that it is not what it was.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.resource_updated("door:///state");
    /// ```
    pub fn resource_updated(&self, uri: &str) {
        if let Some(yard) = self.yard.upgrade() {
            yard.updated(uri);
        }
    }

    fn yard(&self) -> Result<Arc<Yard>, RegisterError> {
        self.yard.upgrade().ok_or(RegisterError::Ended)
    }

    /// Changes a server that still is.
    fn change(&self, change: impl FnOnce(&Yard) -> bool) -> bool {
        self.yard.upgrade().is_some_and(|yard| change(&yard))
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").field("ended", &(self.yard.strong_count() == 0)).finish()
    }
}

impl Yard {
    pub(crate) fn add_tool<M>(&self, tool: Tool, handler: impl ToolHandler<M>) -> Result<(), RegisterError> {
        let registered = register::tool(tool, handler)?;
        self.change(|offered| offered.tools.add("tool", registered))
    }

    pub(crate) fn add_prompt<M>(
        &self,
        prompt: Prompt,
        handler: impl PromptHandler<M>,
    ) -> Result<(), RegisterError> {
        let registered = register::prompt(prompt, handler)?;
        self.change(|offered| offered.prompts.add("prompt", registered))
    }

    pub(crate) fn complete_prompt<M>(
        &self,
        prompt: &str,
        argument: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        let completer = completion::handler(completer);
        let (place, known) = ((prompt, argument), register::arguments_of);
        self.change(|offered| register::completer("prompt", &mut offered.prompts, place, known, completer))
    }

    pub(crate) fn complete_resource<M>(
        &self,
        uri_template: &str,
        variable: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        const KIND: &str = "resource template";
        let completer = completion::handler(completer);
        let (place, known) = ((uri_template, variable), register::variables_of);
        self.change(|offered| register::completer(KIND, &mut offered.templates, place, known, completer))
    }

    pub(crate) fn add_resource<M>(
        &self,
        resource: &Resource,
        handler: impl ResourceHandler<M>,
    ) -> Result<(), RegisterError> {
        let registered = register::resource(resource, handler)?;
        self.change(|offered| offered.resources.add("resource", registered))
    }

    pub(crate) fn add_template<M>(
        &self,
        template: &ResourceTemplate,
        handler: impl TemplateHandler<M>,
    ) -> Result<(), RegisterError> {
        let registered = register::template(template, handler)?;
        self.change(|offered| offered.templates.add("resource template", registered))
    }
}
