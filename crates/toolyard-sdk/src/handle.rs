//! Changes of a server while it serves.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::backend::ServerBackend;
use crate::completion::{self, Completer};
use crate::error::RegisterError;
use crate::handler::ToolHandler;
use crate::prompt::{Prompt, PromptHandler};
use crate::register;
use crate::resource::{Resource, ResourceHandler, ResourceTemplate, TemplateHandler};
use crate::tool::Tool;

/// Registers and removes items while the server serves. Clients are notified of changed lists.
///
/// A handle is cheap to clone and does not keep the server alive: handlers may hold one.
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
    backend: Weak<ServerBackend>,
}

impl ServerHandle {
    pub(crate) fn new(backend: &Arc<ServerBackend>) -> Self {
        Self { backend: Arc::downgrade(backend) }
    }

    /// Adds a tool at the end of the list.
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
    /// As for [`Server::register_tool`](crate::Server::register_tool), and if the server has ended.
    pub fn add_tool<M>(&self, tool: Tool, handler: impl ToolHandler<M>) -> Result<(), RegisterError> {
        self.backend()?.add_tool(tool, handler)
    }

    /// Removes a tool; returns `true` if it existed. Running calls continue.
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
        self.change(|backend| backend.change(|items| items.tools.remove(name)).is_ok())
    }

    /// Adds a prompt at the end of the list.
    ///
    /// ```
    /// # use toolyard_sdk::{Prompt, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_prompt(Prompt::new("greet", "Greets visitors."), async || "Say hello.")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Server::register_prompt`](crate::Server::register_prompt), and if the server has ended.
    pub fn add_prompt<M>(&self, prompt: Prompt, handler: impl PromptHandler<M>) -> Result<(), RegisterError> {
        self.backend()?.add_prompt(prompt, handler)
    }

    /// Removes a prompt and its completers; returns `true` if it existed.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// assert!(!server.handle().remove_prompt("greet"));
    /// ```
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(|backend| backend.change(|items| items.prompts.remove(name)).is_ok())
    }

    /// Adds a completer for an argument of a prompt.
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
    /// handle.add_prompt(Prompt::new("greet", "Greets visitors."), greet)?;
    /// handle.complete_prompt("greet", "language", async |_typed: String| ["English", "French"])?;
    /// # Ok(()) }
    /// # let server = Server::new("door", "1.0.0");
    /// # add(&server.handle()).unwrap();
    /// ```
    ///
    /// # Errors
    /// As for [`Server::complete_prompt`](crate::Server::complete_prompt), and if the server has ended.
    pub fn complete_prompt<M>(
        &self,
        prompt: &str,
        argument: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        self.backend()?.complete_prompt(prompt, argument, completer)
    }

    /// Adds a resource at the end of the list.
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
    /// As for [`Server::resource`](crate::Server::resource), and if the server has ended.
    pub fn add_resource<M>(
        &self,
        resource: Resource,
        handler: impl ResourceHandler<M>,
    ) -> Result<(), RegisterError> {
        self.backend()?.add_resource(&resource, handler)
    }

    /// Removes a resource; returns `true` if it existed. Its subscribers are notified of a change.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// assert!(!server.handle().remove_resource("door:///state"));
    /// ```
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(|backend| {
            let removed = backend.change(|items| items.resources.remove(uri)).is_ok();
            if removed {
                backend.updated(uri);
            }
            removed
        })
    }

    /// Adds a resource template at the end of the list.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceTemplate, ResourceUri, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_template(ResourceTemplate::new("door:///{name}", "door"), async |uri: ResourceUri| uri.0)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Server::resource_template`](crate::Server::resource_template), and if the server has ended.
    pub fn add_template<M>(
        &self,
        template: ResourceTemplate,
        handler: impl TemplateHandler<M>,
    ) -> Result<(), RegisterError> {
        self.backend()?.add_template(&template, handler)
    }

    /// Adds a completer for a variable of a resource template.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceTemplate, ResourceUri, Server};
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.add_template(ResourceTemplate::new("door:///{name}", "door"), async |uri: ResourceUri| uri.0)?;
    /// handle.complete_resource("door:///{name}", "name", async |_typed: String| ["front", "back"])?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Server::complete_resource`](crate::Server::complete_resource), and if the server has ended.
    pub fn complete_resource<M>(
        &self,
        uri_template: &str,
        variable: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        self.backend()?.complete_resource(uri_template, variable, completer)
    }

    /// Removes a template and its completers; returns `true` if it existed.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// assert!(!server.handle().remove_template("door:///{name}"));
    /// ```
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.change(|backend| backend.change(|items| items.templates.remove(uri_template)).is_ok())
    }

    /// Stops serving on every transport: streams end, and new calls are refused. Running calls may finish, within
    /// [`ServerOptions::drain`](crate::ServerOptions::drain) if the server has its own listener.
    ///
    /// An application with the routes of [`Server::into_router`](crate::Server::into_router) must call it before it
    /// waits for its connections to end: clients keep streams open as long as they can.
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
        if let Some(backend) = self.backend.upgrade() {
            backend.stop();
        }
    }

    /// Notifies the subscribers of this resource that it has changed.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # let server = Server::new("door", "1.0.0");
    /// let handle = server.handle();
    /// handle.resource_updated("door:///state");
    /// ```
    pub fn resource_updated(&self, uri: &str) {
        if let Some(backend) = self.backend.upgrade() {
            backend.updated(uri);
        }
    }

    fn backend(&self) -> Result<Arc<ServerBackend>, RegisterError> {
        self.backend.upgrade().ok_or(RegisterError::Ended)
    }

    /// Changes a server that still exists.
    fn change(&self, change: impl FnOnce(&ServerBackend) -> bool) -> bool {
        self.backend.upgrade().is_some_and(|backend| change(&backend))
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").field("ended", &(self.backend.strong_count() == 0)).finish()
    }
}

impl ServerBackend {
    pub(crate) fn add_tool<M>(&self, tool: Tool, handler: impl ToolHandler<M>) -> Result<(), RegisterError> {
        let registered = register::tool(tool, handler)?;
        self.change(|items| items.tools.add("tool", registered))
    }

    pub(crate) fn add_prompt<M>(
        &self,
        prompt: Prompt,
        handler: impl PromptHandler<M>,
    ) -> Result<(), RegisterError> {
        let registered = register::prompt(prompt, handler)?;
        self.change(|items| items.prompts.add("prompt", registered))
    }

    pub(crate) fn complete_prompt<M>(
        &self,
        prompt: &str,
        argument: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        let completer = completion::handler(completer);
        let (position, known) = ((prompt, argument), register::arguments_of);
        self.change(|items| register::completer("prompt", &mut items.prompts, position, known, completer))
    }

    pub(crate) fn complete_resource<M>(
        &self,
        uri_template: &str,
        variable: &str,
        completer: impl Completer<M>,
    ) -> Result<(), RegisterError> {
        const KIND: &str = "resource template";
        let completer = completion::handler(completer);
        let (position, known) = ((uri_template, variable), register::variables_of);
        self.change(|items| register::completer(KIND, &mut items.templates, position, known, completer))
    }

    pub(crate) fn add_resource<M>(
        &self,
        resource: &Resource,
        handler: impl ResourceHandler<M>,
    ) -> Result<(), RegisterError> {
        let registered = register::resource(resource, handler)?;
        self.change(|items| items.resources.add("resource", registered))
    }

    pub(crate) fn add_template<M>(
        &self,
        template: &ResourceTemplate,
        handler: impl TemplateHandler<M>,
    ) -> Result<(), RegisterError> {
        let registered = register::template(template, handler)?;
        self.change(|items| items.templates.add("resource template", registered))
    }
}
