//! The tools of working memory.

pub(crate) mod args;
mod call;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations};

use super::query::QueryRunner;
use super::reader::MemoryReader;
use super::reading::PartReader;
use super::working_memory::WorkingMemory;
use args::{
    DeleteMemoryArgs, GetMemoryArgs, ListMemoryArgs, QueryMemoryArgs, SaveMemoryArgs, SearchMemoryArgs,
};
use call::MemoryHandlers;

/// Names of the tools, as agents know them.
pub const SAVE: &str = "save_to_working_memory";
/// See [`SAVE`].
pub const GET: &str = "get_from_working_memory";
/// See [`SAVE`].
pub const DELETE: &str = "delete_from_working_memory";
/// See [`SAVE`].
pub const SEARCH: &str = "search_working_memory";
/// See [`SAVE`].
pub const LIST: &str = "list_working_memory";
/// See [`SAVE`].
pub const QUERY: &str = "query_working_memory";

/// Member of a call's `_meta` by which the gateway tells these tools how many characters their caller's results have.
pub(crate) const RESULT_CHARS_META: &str = "toolyard/resultChars";

/// Names of all tools. Their results are never stored in working memory again.
pub const NAMES: [&str; 6] = [SAVE, GET, DELETE, SEARCH, LIST, QUERY];

const ABOUT_SAVE: &str = "\
Saves a text or JSON for a limited time, for later in this session. An existing key is replaced.";

const ABOUT_GET: &str = "\
Returns a note of yours, or a chunk of a large tool result, by its key exactly as shown. `lines` or `grep` read a part; \
with the key of the outline, of the whole result.";

const ABOUT_DELETE: &str = "Deletes an entry before it expires.";

const ABOUT_SEARCH: &str = "\
Finds entries by words in keys, values, tags and categories; at most 20, the best first, with what is around the words. \
Without a query, the newest.";

const ABOUT_LIST: &str = "\
Lists entries with time left, category and tags, without values.";

const ABOUT_QUERY: &str = "\
Selects a part of stored JSON by JMESPath, such as `data[?price < `2`].id`, `length(data)` or `data[0:20].{id: id}`. Use \
this instead of reading all chunks of a large JSON result.";

/// Adds the tools of a memory to a server.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, memory: WorkingMemory) -> Result<Server, RegisterError> {
    let (queries, parts) = (QueryRunner::new(memory.limits().query), PartReader::new(memory.limits().read));
    let reader = MemoryReader::new(memory.clone());
    let memory = Arc::new(MemoryHandlers { memory, reader, queries, parts });
    let [save, get, delete, search, list, query] = [(); 6].map(|()| memory.clone());
    server
        .register_tool(save_tool(), async move |context: Context, args: SaveMemoryArgs| {
            save.save(&context, args).await
        })?
        .register_tool(
            read_only(GET, "Get from working memory", ABOUT_GET),
            async move |context: Context, args: GetMemoryArgs| get.get(&context, args).await,
        )?
        .register_tool(delete_tool(), async move |context: Context, args: DeleteMemoryArgs| {
            delete.delete(&context, args).await
        })?
        .register_tool(
            read_only(SEARCH, "Search working memory", ABOUT_SEARCH),
            async move |context: Context, args: SearchMemoryArgs| search.search(&context, args).await,
        )?
        .register_tool(
            read_only(LIST, "List working memory", ABOUT_LIST),
            async move |context: Context, args: ListMemoryArgs| list.list(&context, args).await,
        )?
        .register_tool(
            read_only(QUERY, "Query working memory", ABOUT_QUERY),
            async move |context: Context, args: QueryMemoryArgs| query.query(&context, args).await,
        )
}

fn save_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);
    Tool::new(SAVE, ABOUT_SAVE).title("Save to working memory").annotations(hints)
}

fn delete_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false);
    Tool::new(DELETE, ABOUT_DELETE).title("Delete from working memory").annotations(hints)
}

fn read_only(name: &str, title: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).title(title).annotations(hints)
}
