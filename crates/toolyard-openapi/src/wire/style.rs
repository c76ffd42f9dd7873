//! The table of styles (OpenAPI 3.1.1, section 4.8.12.4).
//!
//! A value is written without a name, as in a path or a header ([`text`]), or as one or several pairs of name and
//! value, as in a query ([`pairs`]). Cases that the table leaves undefined follow common servers:
//!
//! - An array or object in an item or a member is written as JSON, because only `deepObject` can express it. A member
//!   of an exploded object that is an array of primitives is repeated, however: `sort=a&sort=b` in an object of pages
//!   is the format of Spring and of other frameworks that bind parameters by name.
//! - `deepObject` continues below its members: `a[b][c]=1`, and `a[b][0]=1` for arrays. A repeated `a[b]=1` or
//!   `a[b][]=1` works in one family of servers each; the index works in `qs` (Node), PHP, Go's `oapi-codegen`, Stripe
//!   and Prism.
//! - `spaceDelimited` and `pipeDelimited` explode as `form` does, and primitives are written as in `form`.

use toolyard_core::{Json, ToolError};

use super::escape::PercentEscape;
use super::{OpenedValue, is_primitive, plain};
use crate::operation::{ParameterStyle, StyleOptions};

/// Writes a value without a name.
pub(crate) fn text(name: &str, value: &OpenedValue, styled: StyleOptions, escape: PercentEscape) -> String {
    match styled.style {
        ParameterStyle::Label => label(value, styled, escape),
        ParameterStyle::Matrix => matrix(name, value, styled, escape),
        _ => match value {
            OpenedValue::Undefined => String::new(),
            OpenedValue::Text(text) => escape.value(text),
            OpenedValue::Items(_) | OpenedValue::Members(_) => join_values(value, styled, escape),
        },
    }
}

/// Passes the pairs of an argument's value to `pair`, one after the other.
pub(crate) fn pairs(
    argument: &str,
    name: &str,
    value: &OpenedValue,
    styled: StyleOptions,
    escape: PercentEscape,
    pair: &mut dyn FnMut(&str, &str),
) -> Result<(), ToolError> {
    let quoted = escape.name(name);
    match value {
        OpenedValue::Undefined => pair(&quoted, ""),
        OpenedValue::Text(text) => pair(&quoted, &escape.value(text)),
        _ if styled.style == ParameterStyle::DeepObject => {
            write_deep_object(argument, value, escape, &mut { quoted }, pair)?
        }
        OpenedValue::Items(items) if styled.explode => {
            items.iter().for_each(|item| pair(&quoted, &escape.value(&plain(item))));
        }
        OpenedValue::Members(members) if styled.explode => {
            for (name, value) in members {
                repeated(&escape.name(name), value, escape, pair);
            }
        }
        OpenedValue::Items(_) | OpenedValue::Members(_) => pair(&quoted, &join_values(value, styled, escape)),
    }
    Ok(())
}

/// Writes a member, or each item of a member that is an array of primitives.
fn repeated(name: &str, value: &Json, escape: PercentEscape, pair: &mut dyn FnMut(&str, &str)) {
    match value.to_items() {
        Ok(items) if items.iter().all(is_primitive) => {
            let there = items.iter().filter(|item| !item.is_null());
            there.for_each(|item| pair(name, &escape.value(&plain(item))));
        }
        _ => pair(name, &escape.value(&plain(value))),
    }
}

/// Writes the values below `prefix`, which is restored afterwards.
fn write_deep_object(
    argument: &str,
    value: &OpenedValue,
    escape: PercentEscape,
    prefix: &mut String,
    pair: &mut dyn FnMut(&str, &str),
) -> Result<(), ToolError> {
    let (open, close) = (escape.name("["), escape.name("]"));
    let mut below = |key: &str, value: &Json| {
        let length = prefix.len();
        prefix.extend([&open, &*escape.name(key), &close]);
        match OpenedValue::of(argument, value)? {
            // An empty array or object.
            OpenedValue::Undefined => {}
            OpenedValue::Text(text) => pair(prefix, &escape.value(&text)),
            value => write_deep_object(argument, &value, escape, prefix, pair)?,
        }
        prefix.truncate(length);
        Ok(())
    };
    match value {
        OpenedValue::Items(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| below(&index.to_string(), item))
        }
        OpenedValue::Members(members) => members.iter().try_for_each(|(name, value)| below(name, value)),
        OpenedValue::Undefined | OpenedValue::Text(_) => Ok(()),
    }
}

/// Joins all items or members.
fn join_values(value: &OpenedValue, styled: StyleOptions, escape: PercentEscape) -> String {
    let delimiter = escape.delimiter(match styled.style {
        ParameterStyle::SpaceDelimited => ' ',
        ParameterStyle::PipeDelimited => '|',
        ParameterStyle::TabDelimited => '\t',
        _ => ',',
    });
    let between = if styled.explode { "=" } else { &delimiter };
    texts(value, between, escape).join(&delimiter)
}

/// Returns the text of each item, or of each member with `between` between name and value.
fn texts(value: &OpenedValue, between: &str, escape: PercentEscape) -> Vec<String> {
    match value {
        OpenedValue::Undefined => Vec::new(),
        OpenedValue::Text(text) => vec![escape.value(text)],
        OpenedValue::Items(items) => items.iter().map(|item| escape.item(&plain(item))).collect(),
        OpenedValue::Members(members) => {
            let text = |(name, value): &(String, Json)| {
                format!("{}{between}{}", escape.name(name), escape.item(&plain(value)))
            };
            members.iter().map(text).collect()
        }
    }
}

fn label(value: &OpenedValue, styled: StyleOptions, escape: PercentEscape) -> String {
    let texts = if styled.explode {
        texts(value, "=", escape).join(".")
    } else {
        texts(value, ",", escape).join(",")
    };
    format!(".{texts}")
}

fn matrix(name: &str, value: &OpenedValue, styled: StyleOptions, escape: PercentEscape) -> String {
    // Without a value there is no `=` either (RFC 6570, section 3.2.7).
    let pair = |name: &str, value: &str| match value {
        "" => format!(";{name}"),
        _ => format!(";{name}={value}"),
    };
    let name = escape.name(name);
    match value {
        OpenedValue::Items(_) if styled.explode => {
            texts(value, "", escape).iter().map(|item| pair(&name, item)).collect()
        }
        OpenedValue::Members(members) if styled.explode => {
            let member =
                |(name, value): &(String, Json)| pair(&escape.name(name), &escape.value(&plain(value)));
            members.iter().map(member).collect()
        }
        _ => pair(&name, &texts(value, ",", escape).join(",")),
    }
}

#[cfg(test)]
mod tests;
