//! The reader of `prefix` and `overrides`.

use toolyard_core::overrides::Chunking;

use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms,
    handler::{Argument, Change, Override, Prefix},
    tree::{Content, Member},
    value::{self, Strings},
};

const PREFIX: Choice<Prefix> = Choice {
    noun: "prefix",
    words: &[("on-clash", Prefix::OnClash), ("always", Prefix::Always), ("never", Prefix::Never)],
    not_yet: &[],
};

/// What `hide` leaves nobody to see.
const SHOWN: &[&str] = &["name", "title", "description", "arguments", "price", "chunk", "chunkThreshold"];

pub(super) fn prefix(fields: &mut Fields<'_>) -> Prefix {
    fields.with_default("prefix", |cursor| cursor.choice(&PREFIX), Prefix::default())
}

/// The overrides of a handler, by the names that its server has for the tools.
pub(super) fn overrides(fields: &mut Fields<'_>) -> Vec<(String, Override)> {
    let read = |cursor: Cursor<'_>| {
        // Where this list is; names are unique in it.
        let list = cursor.place().to_string();
        cursor.entries(forms::some_name, |tool| tool_override(tool, &list))
    };
    fields.with_default("overrides", read, Vec::new())
}

fn tool_override(cursor: Cursor<'_>, list: &str) -> Option<Override> {
    if changes_nothing(&cursor) {
        return None;
    }
    let mut fields = cursor.fields()?;
    if fields.with_default("hide", Cursor::flag, false) {
        fields.misplaced(SHOWN, "nobody sees this of a hidden tool");
        fields.finish();
        return Some(Override::Hide);
    }
    let change = Change {
        name: fields.optional("name", |cursor| name(cursor, list)),
        title: fields.optional("title", Cursor::text),
        description: fields.optional("description", Cursor::text),
        arguments: fields.with_default("arguments", arguments, Vec::new()),
        price: fields.optional("price", |cursor| cursor.parse(forms::price)),
        chunking: chunking(&mut fields),
    };
    fields.finish();
    Some(Override::Change(change))
}

/// What becomes of large results: those of one tool, or of all of a handler.
pub(super) fn chunking(fields: &mut Fields<'_>) -> Chunking {
    Chunking {
        structured: fields.optional("chunk", Cursor::flag),
        threshold: fields.optional("chunkThreshold", Cursor::count),
    }
}

/// `list` is where the overrides of the handler are.
fn name(cursor: Cursor<'_>, list: &str) -> Option<String> {
    let name = cursor.clone().parse(forms::published_name)?;
    cursor.declare("tool of this name in this handler", &format!("{list} {name}"));
    Some(name)
}

fn arguments(cursor: Cursor<'_>) -> Option<Vec<(String, Argument)>> {
    if changes_nothing(&cursor) {
        return None;
    }
    cursor.entries(forms::some_name, argument)
}

fn argument(cursor: Cursor<'_>) -> Option<Argument> {
    if changes_nothing(&cursor) {
        return None;
    }
    let mut fields = cursor.fields()?;
    let value = |cursor| value::any(cursor, Strings::Expanded);
    let pin = fields.optional("pin", value);
    let argument = match pin {
        Some(value) => {
            fields.misplaced(&["default", "description"], "callers do not see an argument that has a `pin`");
            Argument::Pin(value)
        }
        None => Argument::Show {
            default: fields.optional("default", value),
            description: fields.optional("description", Cursor::text),
        },
    };
    fields.finish();
    Some(argument)
}

/// Whether an object that is there to change something has nothing in it, which is reported.
fn changes_nothing(cursor: &Cursor<'_>) -> bool {
    let empty = |member: &Member| matches!(member.value.content, Content::Null);
    let nothing = matches!(cursor.content(), Content::Object(members) if members.iter().all(empty));
    if nothing {
        cursor.report(cursor.problem("this changes nothing"));
    }
    nothing
}
