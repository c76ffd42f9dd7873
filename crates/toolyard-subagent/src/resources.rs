//! The resources with the results of subagents. Each caller reads those of its own subagents.

use toolyard_sdk::{Context, NotFound, RegisterError, Resource, ResourceTemplate, Server, ToolFailure};

use crate::error::SubagentError;
use crate::subagents::Subagents;
use crate::texts;
use crate::tools::owner;

/// URI of the list of subagents.
pub(crate) const LIST_URI: &str = "toolyard://subagents";

/// Prefix of the URI of a subagent; its id follows.
pub(crate) const ONE_PREFIX: &str = "toolyard://subagents/";

/// URI of a subagent, with its id.
const ONE_URI: &str = "toolyard://subagents/{task_id}";

/// Adds the resources to a server.
pub(crate) fn add(server: Server, subagents: &Subagents) -> Result<Server, RegisterError> {
    let [all, one] = [(); 2].map(|()| subagents.clone());
    let list = Resource::new(LIST_URI, "subagents")
        .description("Subagents and their states.")
        .mime_type("text/markdown");
    let subagent = ResourceTemplate::new(ONE_URI, "subagent")
        .description("Progress and result of a subagent.")
        .mime_type("text/markdown");
    server
        .resource(list, async move |context: Context| {
            let records = all.list(&owner(&context)).await.map_err(SubagentError::Store)?;
            Ok::<_, ToolFailure>(texts::list(&records))
        })?
        .resource_template(subagent, async move |context: Context, task_id: String| {
            let record = one.get(&owner(&context), &task_id).await.map_err(SubagentError::Store)?;
            let record = record.ok_or(NotFound)?;
            Ok::<_, ToolFailure>(texts::details(&record))
        })
}
