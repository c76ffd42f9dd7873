//! The tools for skills.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolFailure};

use super::error::SkillError;
use super::name::SkillName;
use super::skill::{NewSkill, StoredSkill};
use super::store::{SkillOwner, SkillStore};
use crate::memory::MemoryCaller;
use crate::memory::tools::args::{TagList, non_blank, tags};

/// Names of the tools, as agents know them.
pub const SAVE: &str = "save_skill";
/// See [`SAVE`].
pub const GET: &str = "get_skill";
/// See [`SAVE`].
pub const LIST: &str = "list_skills";
/// See [`SAVE`].
pub const DELETE: &str = "delete_skill";
/// Names of all tools.
pub const NAMES: [&str; 4] = [SAVE, GET, LIST, DELETE];

const ABOUT_SAVE: &str = "\
Keeps instructions for a kind of task for later sessions, as Markdown: a heading, when to use it, numbered steps. An \
existing name is replaced.";

const ABOUT_GET: &str = "\
Returns the instructions of a skill, to follow them.";

const ABOUT_LIST: &str = "Lists the skills that you have saved, each with its purpose.";

const ABOUT_DELETE: &str = "Deletes a skill.";

/// Maximum number of related skills.
const MAX_SEE_ALSO: usize = 10;

const DAY: u64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Deserialize, JsonSchema)]
struct SaveSkillArgs {
    /// Such as "plan-meeting" or "research/summarize"
    name: String,
    /// The whole Markdown
    content: String,
    /// Purpose, in 15 words at most
    #[serde(default)]
    summary: Option<String>,
    /// Related skills, separated by commas, or a list
    #[serde(default)]
    see_also: TagList,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SkillNameArgs {
    /// As list_skills shows it
    name: String,
}

/// Adds the tools to a server.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, skills: SkillStore) -> Result<Server, RegisterError> {
    let [save, get, list, delete] = [(); 4].map(|()| skills.clone());
    server
        .register_tool(save_tool(), async move |context: Context, args: SaveSkillArgs| {
            save_skill(&save, &owner(&context), args).await
        })?
        .register_tool(read_only(GET, ABOUT_GET), async move |context: Context, args: SkillNameArgs| {
            get_skill(&get, &owner(&context), &args.name).await
        })?
        .register_tool(read_only(LIST, ABOUT_LIST), async move |context: Context| {
            list_skills(&list, &owner(&context)).await
        })?
        .register_tool(delete_tool(), async move |context: Context, args: SkillNameArgs| {
            delete_skill(&delete, &owner(&context), &args.name).await
        })
}

fn owner(context: &Context) -> SkillOwner {
    SkillOwner::of(&MemoryCaller::of_context(context))
}

async fn save_skill(
    skills: &SkillStore,
    owner: &SkillOwner,
    args: SaveSkillArgs,
) -> Result<String, ToolFailure> {
    let name = SkillName::parse("name", &args.name)?;
    let (summary, see_also) = (non_blank(args.summary), see_also(args.see_also)?);
    let new = NewSkill {
        name: &name,
        content: &args.content,
        summary: summary.as_deref(),
        see_also: see_also.as_deref(),
    };
    let skill = skills.save(owner, new).await?;
    let done = if skill.updated_at.is_some() { "updated" } else { "saved" };
    Ok(format!("Skill '{}' {done}. Its summary: {}", skill.name, skill.summary))
}

async fn get_skill(skills: &SkillStore, owner: &SkillOwner, name: &str) -> Result<String, ToolFailure> {
    let name = SkillName::parse("name", name)?;
    let Some(StoredSkill { mut content, see_also, .. }) = skills.get(owner, &name).await? else {
        return Ok(missing(&name));
    };
    if !see_also.is_empty() {
        let _ = write!(content, "\n\nSee also the skills: {}", see_also.join(", "));
    }
    Ok(content)
}

async fn list_skills(skills: &SkillStore, owner: &SkillOwner) -> Result<String, ToolFailure> {
    let (skill_list, now) = (skills.list(owner).await?, skills.now());
    if skill_list.is_empty() {
        return Ok("No skills saved yet.".to_owned());
    }
    let mut text = format!("Available skills ({}):", skill_list.len());
    for StoredSkill { name, summary, created_at, last_used_at, .. } in &skill_list {
        let age = now.saturating_sub(*created_at) / DAY;
        let used = last_used_at.map_or_else(
            || "never used".to_owned(),
            |last| format!("last used {}d ago", now.saturating_sub(last) / DAY),
        );
        let _ = write!(text, "\n- {name} ({age}d old, {used}): {summary}");
    }
    Ok(text)
}

async fn delete_skill(skills: &SkillStore, owner: &SkillOwner, name: &str) -> Result<String, ToolFailure> {
    let name = SkillName::parse("name", name)?;
    let deleted = skills.delete(owner, &name).await?;
    Ok(deleted.map_or_else(|| missing(&name), |skill| format!("Skill '{}' deleted.", skill.name)))
}

fn missing(name: &SkillName) -> String {
    format!("Skill '{name}' not found. Call list_skills to see available skills.")
}

/// Parses the names of related skills; `None` if the call has none.
fn see_also(names: TagList) -> Result<Option<Vec<String>>, SkillError> {
    if matches!(names, TagList::None) {
        return Ok(None);
    }
    let names = tags(names);
    if names.len() > MAX_SEE_ALSO {
        return Err(SkillError::TooManyNames { limit: MAX_SEE_ALSO });
    }
    let names = names.iter().map(|name| SkillName::parse("see_also", name).map(|name| name.to_string()));
    names.collect::<Result<_, _>>().map(Some)
}

fn save_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);
    Tool::new(SAVE, ABOUT_SAVE).annotations(hints)
}

fn delete_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false);
    Tool::new(DELETE, ABOUT_DELETE).annotations(hints)
}

fn read_only(name: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).annotations(hints)
}
