//! Changes to a server that serves.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::backend::Yard;
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
