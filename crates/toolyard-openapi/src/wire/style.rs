//! The table of styles (OpenAPI 3.1.1, section 4.8.12.4).
//!
//! A value goes where it has no name beside it, as in a path or a header ([`text`]), or is one or several pairs of a name
//! and a value, as in a query ([`pairs`]). What the table leaves undefined is written so that servers in use read it:
//!
//! - A value in an item or a member that is an array or an object itself is its JSON text, for only `deepObject` has a
//!   place for it. But a member that is an array of primitives, in an exploded object, is repeated: `sort=a&sort=b` in an
//!   object of pages is what Spring, and whatever binds parameters by name, reads.
//! - `deepObject` goes on below its members: `a[b][c]=1`, and `a[b][0]=1` for arrays. Servers read a repeated `a[b]=1` or
//!   `a[b][]=1` in one family each; the index is read by `qs` (Node), PHP, Go's `oapi-codegen`, Stripe and Prism.
//! - `spaceDelimited` and `pipeDelimited` explode as `form` does, and a primitive is written as in `form`.

use toolyard_core::{Json, ToolError};

use super::escape::Escape;
use super::{Opened, is_primitive, plain};
use crate::operation::{Style, Styled};

/// Writes a value where it has no name beside it.
pub(crate) fn text(name: &str, value: &Opened, styled: Styled, escape: Escape) -> String {
    match styled.style {
        Style::Label => label(value, styled, escape),
        Style::Matrix => matrix(name, value, styled, escape),
        _ => match value {
            Opened::Undefined => String::new(),
            Opened::Text(text) => escape.value(text),
            Opened::Items(_) | Opened::Members(_) => joined(value, styled, escape),
        },
    }
}

/// Gives the pairs of the value of an argument to `pair`, one after the other.
pub(crate) fn pairs(
    argument: &str,
    name: &str,
    value: &Opened,
    styled: Styled,
    escape: Escape,
    pair: &mut dyn FnMut(&str, &str),
) -> Result<(), ToolError> {
    let quoted = escape.name(name);
    match value {
        Opened::Undefined => pair(&quoted, ""),
        Opened::Text(text) => pair(&quoted, &escape.value(text)),
        _ if styled.style == Style::DeepObject => deep(argument, value, escape, &mut { quoted }, pair)?,
        Opened::Items(items) if styled.explode => {
            items.iter().for_each(|item| pair(&quoted, &escape.value(&plain(item))));
        }
        Opened::Members(members) if styled.explode => {
            for (name, value) in members {
                repeated(&escape.name(name), value, escape, pair);
            }
        }
        Opened::Items(_) | Opened::Members(_) => pair(&quoted, &joined(value, styled, escape)),
    }
    Ok(())
}

/// A member, or each item of one that is an array of primitives.
fn repeated(name: &str, value: &Json, escape: Escape, pair: &mut dyn FnMut(&str, &str)) {
    match value.to_items() {
        Ok(items) if items.iter().all(is_primitive) => {
            let there = items.iter().filter(|item| !item.is_null());
            there.for_each(|item| pair(name, &escape.value(&plain(item))));
        }
        _ => pair(name, &escape.value(&plain(value))),
    }
}

/// What is below `prefix`, which is the same again afterwards.
fn deep(
    argument: &str,
    value: &Opened,
    escape: Escape,
    prefix: &mut String,
    pair: &mut dyn FnMut(&str, &str),
) -> Result<(), ToolError> {
    let (open, close) = (escape.name("["), escape.name("]"));
    let mut below = |key: &str, value: &Json| {
        let length = prefix.len();
        prefix.extend([&open, &*escape.name(key), &close]);
        match Opened::of(argument, value)? {
            // An array or an object with nothing in it.
            Opened::Undefined => {}
            Opened::Text(text) => pair(prefix, &escape.value(&text)),
            value => deep(argument, &value, escape, prefix, pair)?,
        }
        prefix.truncate(length);
        Ok(())
    };
    match value {
        Opened::Items(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| below(&index.to_string(), item))
        }
        Opened::Members(members) => members.iter().try_for_each(|(name, value)| below(name, value)),
        Opened::Undefined | Opened::Text(_) => Ok(()),
    }
}

/// All items or members in one text.
fn joined(value: &Opened, styled: Styled, escape: Escape) -> String {
    let delimiter = escape.delimiter(match styled.style {
        Style::SpaceDelimited => ' ',
        Style::PipeDelimited => '|',
        Style::TabDelimited => '\t',
        _ => ',',
    });
    let between = if styled.explode { "=" } else { &delimiter };
    texts(value, between, escape).join(&delimiter)
}

/// Each item, or each member with something between its name and its value.
fn texts(value: &Opened, between: &str, escape: Escape) -> Vec<String> {
    match value {
        Opened::Undefined => Vec::new(),
        Opened::Text(text) => vec![escape.value(text)],
        Opened::Items(items) => items.iter().map(|item| escape.item(&plain(item))).collect(),
        Opened::Members(members) => {
            let text = |(name, value): &(String, Json)| {
                format!("{}{between}{}", escape.name(name), escape.item(&plain(value)))
            };
            members.iter().map(text).collect()
        }
    }
}

fn label(value: &Opened, styled: Styled, escape: Escape) -> String {
    let texts = if styled.explode {
        texts(value, "=", escape).join(".")
    } else {
        texts(value, ",", escape).join(",")
    };
    format!(".{texts}")
}

fn matrix(name: &str, value: &Opened, styled: Styled, escape: Escape) -> String {
    // Without a value there is no `=` either (RFC 6570, section 3.2.7).
    let pair = |name: &str, value: &str| match value {
        "" => format!(";{name}"),
        _ => format!(";{name}={value}"),
    };
    let name = escape.name(name);
    match value {
        Opened::Items(_) if styled.explode => {
            texts(value, "", escape).iter().map(|item| pair(&name, item)).collect()
        }
        Opened::Members(members) if styled.explode => {
            let member =
                |(name, value): &(String, Json)| pair(&escape.name(name), &escape.value(&plain(value)));
            members.iter().map(member).collect()
        }
        _ => pair(&name, &texts(value, ",", escape).join(",")),
    }
}

#[cfg(test)]
mod tests;
