//! The tools of skills.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolFailure};

use super::limits::SkillError;
use super::name::SkillName;
use super::skill::{NewSkill, Skill};
use super::store::{Owner, Skills};
use crate::memory::Who;
use crate::memory::tools::args::{Tags, said, tags};

/// The names of the tools, as agents know them.
pub const SAVE: &str = "save_skill";
/// See [`SAVE`].
pub const GET: &str = "get_skill";
/// See [`SAVE`].
pub const LIST: &str = "list_skills";
/// See [`SAVE`].
pub const DELETE: &str = "delete_skill";
/// All of them.
pub const NAMES: [&str; 4] = [SAVE, GET, LIST, DELETE];

const ABOUT_SAVE: &str = "\
Keeps instructions for a kind of task under a name, so that you can follow them in later sessions. Saving under a name again \
replaces what was there. Write Markdown: a heading, when to use it, and numbered steps.";

const ABOUT_GET: &str = "\
Returns the instructions of a skill, so that you can follow them. Call this when list_skills shows one that fits the task.";

const ABOUT_LIST: &str = "Lists the skills that are kept, each with what it is for.";

const ABOUT_DELETE: &str = "Deletes a skill that is wrong or no longer needed.";

/// How many others a skill may name.
const MOST_SEE_ALSO: usize = 10;

const DAY: u64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Deserialize, JsonSchema)]
struct SaveArgs {
    /// What to call it: letters, digits, "-" and "_", with "/" between parts, such as "plan-meeting" or "research/summarize"
    name: String,
    /// The whole instructions, as Markdown
    content: String,
    /// What it is for, in 15 words at most; its first heading or sentence if left out
    #[serde(default)]
    summary: Option<String>,
    /// Names of skills that go with it, separated by commas, or as a list; if left out, those that it had
    #[serde(default)]
    see_also: Tags,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NameArgs {
    /// The name of the skill as list_skills shows it
    name: String,
}

/// Adds the tools to a server.
///
/// # Errors
/// When there is a tool of one of their names already.
pub fn add(server: Server, skills: Skills) -> Result<Server, RegisterError> {
    let [save, get, list, delete] = [(); 4].map(|()| skills.clone());
    server
        .register_tool(save_tool(), async move |context: Context, args: SaveArgs| {
            saved(&save, &owner(&context), args).await
        })?
        .register_tool(
            read_only(GET, "Get a skill", ABOUT_GET),
            async move |context: Context, args: NameArgs| got(&get, &owner(&context), &args.name).await,
        )?
        .register_tool(read_only(LIST, "List skills", ABOUT_LIST), async move |context: Context| {
            listed(&list, &owner(&context)).await
        })?
        .register_tool(delete_tool(), async move |context: Context, args: NameArgs| {
            deleted(&delete, &owner(&context), &args.name).await
        })
}

fn owner(context: &Context) -> Owner {
    Owner::of(&Who::of_context(context))
}

async fn saved(skills: &Skills, owner: &Owner, args: SaveArgs) -> Result<String, ToolFailure> {
    let name = SkillName::parse("name", &args.name)?;
    let (summary, see_also) = (said(args.summary), see_also(args.see_also)?);
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

async fn got(skills: &Skills, owner: &Owner, name: &str) -> Result<String, ToolFailure> {
    let name = SkillName::parse("name", name)?;
    let Some(Skill { mut content, see_also, .. }) = skills.get(owner, &name).await? else {
        return Ok(missing(&name));
    };
    if !see_also.is_empty() {
        let _ = write!(content, "\n\nSee also the skills: {}", see_also.join(", "));
    }
    Ok(content)
}

async fn listed(skills: &Skills, owner: &Owner) -> Result<String, ToolFailure> {
    let (listed, now) = (skills.list(owner).await?, skills.now());
    if listed.is_empty() {
        return Ok("No skills saved yet.".to_owned());
    }
    let mut text = format!("Available skills ({}):", listed.len());
    for Skill { name, summary, created_at, last_used_at, .. } in &listed {
        let age = now.saturating_sub(*created_at) / DAY;
        let used = last_used_at.map_or_else(
            || "never used".to_owned(),
            |last| format!("last used {}d ago", now.saturating_sub(last) / DAY),
        );
        let _ = write!(text, "\n- {name} ({age}d old, {used}): {summary}");
    }
    Ok(text)
}

async fn deleted(skills: &Skills, owner: &Owner, name: &str) -> Result<String, ToolFailure> {
    let name = SkillName::parse("name", name)?;
    let deleted = skills.delete(owner, &name).await?;
    Ok(deleted.map_or_else(|| missing(&name), |skill| format!("Skill '{}' deleted.", skill.name)))
}

fn missing(name: &SkillName) -> String {
    format!("Skill '{name}' not found. Call list_skills to see available skills.")
}

/// The names that a call gives; `None` where it says nothing of them.
fn see_also(given: Tags) -> Result<Option<Vec<String>>, SkillError> {
    if matches!(given, Tags::None) {
        return Ok(None);
    }
    let names = tags(given);
    if names.len() > MOST_SEE_ALSO {
        return Err(SkillError::TooManyNames { limit: MOST_SEE_ALSO });
    }
    let names = names.iter().map(|name| SkillName::parse("see_also", name).map(|name| name.to_string()));
    names.collect::<Result<_, _>>().map(Some)
}

fn save_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);
    Tool::new(SAVE, ABOUT_SAVE).title("Save a skill").annotations(hints)
}

fn delete_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false);
    Tool::new(DELETE, ABOUT_DELETE).title("Delete a skill").annotations(hints)
}

fn read_only(name: &str, title: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).title(title).annotations(hints)
}
