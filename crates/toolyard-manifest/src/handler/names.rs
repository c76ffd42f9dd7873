//! Changes that a manifest makes to the tools of a handler, their names and definitions: `prefix`, `pin` and
//! `overrides`.

use serde_json::Value;
use toolyard_core::{access::CallPrice, overrides::ChunkingPolicy};

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats,
    tree::{NodeContent, ObjectMember},
    value::{self, StringMode},
};

/// `prefix`: when tools and prompts get the name of their handler as a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMode {
    /// `on-clash`: if the name is already in use, or invalid.
    #[default]
    OnClash,
    /// `always`: on each of them.
    Always,
    /// `never`: on none. A tool whose name is already in use is not published.
    Never,
}

/// `pin`: the treatment of tools whose definitions change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefinitionPin {
    /// `warn`: serve the new definitions and report the change.
    #[default]
    Warn,
    /// `hold`: serve the old definitions until the change is accepted, and no new tools.
    Hold,
}

/// A change of one tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOverride {
    /// `hide: true`: callers can neither see nor call it.
    Hide,
    /// Callers see it changed.
    Change(ToolModification),
}

/// The changes of a tool's definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolModification {
    /// `name`: the complete name.
    pub name: Option<String>,
    /// `title`: the display name.
    pub title: Option<String>,
    /// `description`: the description.
    pub description: Option<String>,
    /// `arguments`, by their names, in the order of the document.
    pub arguments: Vec<(String, ArgumentOverride)>,
    /// `price`: the price of a call.
    pub price: Option<CallPrice>,
    /// `chunk` and `chunkThreshold`: the treatment of its large results.
    pub chunking: ChunkingPolicy,
}

/// A change of one argument.
#[derive(Clone, PartialEq)]
pub enum ArgumentOverride {
    /// `pin`: the fixed value of the argument. Callers neither see the argument nor may send it.
    Pin(Value),
    /// Callers see it changed.
    Show {
        /// `default`: the value if a caller sends none.
        default: Option<Value>,
        /// `description`: the description of the argument.
        description: Option<String>,
    },
}

/// Shows only the variant, because values may be secret.
impl std::fmt::Debug for ArgumentOverride {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pin(_) => "Pin",
            Self::Show { .. } => "Show",
        })
    }
}

// === readers ===

const PREFIX: KeywordChoice<PrefixMode> = KeywordChoice {
    noun: "prefix",
    words: &[("on-clash", PrefixMode::OnClash), ("always", PrefixMode::Always), ("never", PrefixMode::Never)],
    unsupported: &[],
};

const PIN: KeywordChoice<DefinitionPin> = KeywordChoice {
    noun: "pin",
    words: &[("warn", DefinitionPin::Warn), ("hold", DefinitionPin::Hold)],
    unsupported: &[],
};

/// Fields that have no effect on a hidden tool.
const VISIBLE_FIELDS: &[&str] =
    &["name", "title", "description", "arguments", "price", "chunk", "chunkThreshold"];

pub(super) fn prefix(fields: &mut ObjectFields<'_>) -> PrefixMode {
    fields.with_default("prefix", |cursor| cursor.choice(&PREFIX), PrefixMode::default())
}

pub(super) fn pin(fields: &mut ObjectFields<'_>) -> DefinitionPin {
    fields.with_default("pin", |cursor| cursor.choice(&PIN), DefinitionPin::default())
}

/// Reads the overrides of a handler, by the upstream names of its tools.
pub(super) fn overrides(fields: &mut ObjectFields<'_>) -> Vec<(String, ToolOverride)> {
    let read = |cursor: ValueCursor<'_>| {
        // The location of this list; names are unique in it.
        let list = cursor.location().to_string();
        cursor.entries(formats::non_empty_name, |tool| tool_override(tool, &list))
    };
    fields.with_default("overrides", read, Vec::new())
}

fn tool_override(cursor: ValueCursor<'_>, list: &str) -> Option<ToolOverride> {
    if is_empty_override(&cursor) {
        return None;
    }
    let mut fields = cursor.fields()?;
    if fields.with_default("hide", ValueCursor::flag, false) {
        fields.reject_misplaced(VISIBLE_FIELDS, "it has no effect on a hidden tool");
        fields.finish();
        return Some(ToolOverride::Hide);
    }
    let change = ToolModification {
        name: fields.optional("name", |cursor| name(cursor, list)),
        title: fields.optional("title", ValueCursor::text),
        description: fields.optional("description", ValueCursor::text),
        arguments: fields.with_default("arguments", arguments, Vec::new()),
        price: fields.optional("price", |cursor| cursor.parse(formats::price)),
        chunking: chunking(&mut fields),
    };
    fields.finish();
    Some(ToolOverride::Change(change))
}

/// Reads the treatment of large results, of one tool or of all tools of a handler.
pub(super) fn chunking(fields: &mut ObjectFields<'_>) -> ChunkingPolicy {
    ChunkingPolicy {
        structured: fields.optional("chunk", ValueCursor::flag),
        threshold: fields.optional("chunkThreshold", ValueCursor::count),
    }
}

/// Reads the new name of a tool. `list` is the location of the handler's overrides.
fn name(cursor: ValueCursor<'_>, list: &str) -> Option<String> {
    let name = cursor.clone().parse(formats::published_name)?;
    cursor.declare("tool name in this handler", &format!("{list} {name}"));
    Some(name)
}

fn arguments(cursor: ValueCursor<'_>) -> Option<Vec<(String, ArgumentOverride)>> {
    if is_empty_override(&cursor) {
        return None;
    }
    cursor.entries(formats::non_empty_name, argument)
}

fn argument(cursor: ValueCursor<'_>) -> Option<ArgumentOverride> {
    if is_empty_override(&cursor) {
        return None;
    }
    let mut fields = cursor.fields()?;
    let value = |cursor| value::any(cursor, StringMode::Expanded);
    let pin = fields.optional("pin", value);
    let argument = match pin {
        Some(value) => {
            fields.reject_misplaced(&["default", "description"], "a pinned argument is hidden from callers");
            ArgumentOverride::Pin(value)
        }
        None => ArgumentOverride::Show {
            default: fields.optional("default", value),
            description: fields.optional("description", ValueCursor::text),
        },
    };
    fields.finish();
    Some(argument)
}

/// Returns true for an object without fields, and reports it.
fn is_empty_override(cursor: &ValueCursor<'_>) -> bool {
    let empty = |member: &ObjectMember| matches!(member.value.content, NodeContent::Null);
    let nothing = matches!(cursor.content(), NodeContent::Object(members) if members.iter().all(empty));
    if nothing {
        cursor.report(cursor.problem("this override changes nothing"));
    }
    nothing
}
