//! Shapes of the members of definitions, by the schema of MCP. Unknown members have any shape.

use std::borrow::Cow;

use super::RepairLog;
use crate::json::{Json, Object};
use crate::registry::EntryKind;

/// The shape of a value.
pub(super) enum ValueShape {
    Text,
    Flag,
    Number,
    /// One of some texts.
    Word(&'static [&'static str]),
    List(&'static Self),
    /// An object with members of some shapes. Without the required ones it is broken.
    Members {
        known: &'static [NamedShape],
        required: &'static [&'static str],
    },
}

/// The name and the shape of a member.
pub(super) type NamedShape = (&'static str, ValueShape);

use ValueShape::{Flag, List, Members, Number, Text, Word};

const ANY_OBJECT: ValueShape = Members { known: &[], required: &[] };

const ICONS: ValueShape = List(&Members {
    known: &[("src", Text), ("mimeType", Text), ("sizes", List(&Text)), ("theme", Word(&["dark", "light"]))],
    required: &["src"],
});

const TOOL: &[NamedShape] = &[
    ("title", Text),
    ("description", Text),
    ("icons", ICONS),
    ("_meta", ANY_OBJECT),
    (
        "annotations",
        Members {
            known: &[
                ("title", Text),
                ("readOnlyHint", Flag),
                ("destructiveHint", Flag),
                ("idempotentHint", Flag),
                ("openWorldHint", Flag),
            ],
            required: &[],
        },
    ),
    (
        "execution",
        Members { known: &[("taskSupport", Word(&["forbidden", "optional", "required"]))], required: &[] },
    ),
];

const PROMPT: &[NamedShape] = &[
    ("title", Text),
    ("description", Text),
    ("icons", ICONS),
    ("_meta", ANY_OBJECT),
    (
        "arguments",
        List(&Members {
            known: &[("name", Text), ("title", Text), ("description", Text), ("required", Flag)],
            required: &["name"],
        }),
    ),
];

const RESOURCE: &[NamedShape] = &[
    ("name", Text),
    ("title", Text),
    ("description", Text),
    ("mimeType", Text),
    ("size", Number),
    ("icons", ICONS),
    ("_meta", ANY_OBJECT),
    (
        "annotations",
        Members {
            known: &[
                ("audience", List(&Word(&["user", "assistant"]))),
                ("priority", Number),
                ("lastModified", Text),
            ],
            required: &[],
        },
    ),
];

/// Returns the members of the definitions of a kind, without the schemas of tools.
pub(super) const fn members(kind: EntryKind) -> &'static [NamedShape] {
    match kind {
        EntryKind::Tools => TOOL,
        EntryKind::Prompts => PROMPT,
        EntryKind::Resources | EntryKind::Templates => RESOURCE,
    }
}

/// Leaves out the members that are not of their shape. `path` is that of the object, with a full stop at its end.
pub(super) fn leave_out_broken(
    members: &[NamedShape],
    object: &mut Cow<'_, Object>,
    path: &str,
    log: &mut RepairLog,
) {
    for (name, shape) in members {
        let Some(value) = object.get(name) else { continue };
        match shape.fit(value, &format!("{path}{name}"), log) {
            Fit::Valid => {}
            Fit::Changed(value) => object.to_mut().set(name, value),
            Fit::Broken => {
                log.add(format_args!("`{path}{name}` is not {}: left out", shape.noun()));
                object.to_mut().remove(name);
            }
        }
    }
}

/// The result of a comparison of a value with a shape.
enum Fit {
    Valid,
    /// Valid without some of its parts.
    Changed(Json),
    Broken,
}

impl ValueShape {
    const fn noun(&self) -> &'static str {
        match self {
            Text => "a string",
            Flag => "a boolean",
            Number => "a number",
            Word(_) => "one of its values",
            List(_) => "a list",
            Members { .. } => "an object",
        }
    }

    fn fit(&self, value: &Json, path: &str, log: &mut RepairLog) -> Fit {
        let is_valid = match self {
            Text => value.is_string(),
            Flag => value.to_bool().is_some(),
            Number => value.is_number(),
            Word(words) => value.to_str().is_some_and(|text| words.contains(&&*text)),
            List(item) => return item.fit_items(value, path, log),
            Members { known, required } => {
                let Ok(object) = value.to_object() else { return Fit::Broken };
                let mut object = Cow::Borrowed(&object);
                leave_out_broken(known, &mut object, &format!("{path}."), log);
                return match object {
                    _ if required.iter().any(|name| object.get(name).is_none()) => Fit::Broken,
                    Cow::Borrowed(_) => Fit::Valid,
                    Cow::Owned(object) => Fit::Changed(object.to_json()),
                };
            }
        };
        if is_valid { Fit::Valid } else { Fit::Broken }
    }

    /// Compares each item of a list with this shape. Broken ones are left out.
    fn fit_items(&self, value: &Json, path: &str, log: &mut RepairLog) -> Fit {
        let Ok(items) = value.to_items() else { return Fit::Broken };
        let (mut fitting, mut differs) = (Vec::with_capacity(items.len()), false);
        for item in items {
            let fit = self.fit(&item, path, log);
            differs |= !matches!(fit, Fit::Valid);
            match fit {
                Fit::Valid => fitting.push(item),
                Fit::Changed(item) => fitting.push(item),
                Fit::Broken => log.add(format_args!("an item of `{path}` is not valid: left out")),
            }
        }
        if differs { Fit::Changed(Json::array(&fitting)) } else { Fit::Valid }
    }
}
