//! Schemas of messages: JSON Schema 2020-12 for their representation in JSON.
//!
//! The text of each type is written once ([`fragment`]) and shared by all tools. A tool's schema consists of the texts of
//! its types within a size limit ([`assembly`]): a type with one reference stands where it is referred to, others are in
//! `$defs`, and types that do not fit are open objects, the deepest first.

mod assembly;
mod fragment;

use std::fmt::Write;

use self::assembly::{AssembledSchema, Assembly};
pub(super) use self::fragment::quoted;
use self::fragment::{Detail, FragmentWriter};
use super::types::{TypeId, TypePool};

/// Maximum size of an argument schema, in bytes.
pub(super) const MAX_INPUT_BYTES: usize = 64_000;

/// Maximum size of a result schema, in bytes. It is only informative, and costs models as much as the other.
pub(super) const MAX_OUTPUT_BYTES: usize = 8_000;

/// Schema of the member that says whether a stream was cut.
const TRUNCATED: &str = r#"{"type":"boolean","description":"True if further messages are left out"}"#;

/// The purpose of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Arguments: the form that models are to use. Arguments in another form that the mapping allows are accepted too.
    Input,
    /// Results: every form that the mapping produces.
    Output,
}

/// A schema as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TypeSchema {
    pub(super) text: String,
    /// True if some types are open objects because of the limit.
    pub(super) is_pruned: bool,
}

/// Writes schemas for one direction.
pub(super) struct SchemaWriter<'p> {
    pool: &'p TypePool,
    direction: Direction,
    full: FragmentWriter<'p>,
    terse: FragmentWriter<'p>,
}

impl<'p> SchemaWriter<'p> {
    pub(super) fn new(pool: &'p TypePool, direction: Direction) -> Self {
        let max_bytes = match direction {
            Direction::Input => MAX_INPUT_BYTES,
            Direction::Output => MAX_OUTPUT_BYTES,
        };
        Self {
            pool,
            direction,
            full: FragmentWriter::new(pool, direction, Detail::Full, max_bytes),
            terse: FragmentWriter::new(pool, direction, Detail::Terse, max_bytes),
        }
    }

    /// Returns the schema of a method's arguments in at most `max_bytes` bytes; `None` if it is too large.
    pub(super) fn input(&mut self, message: u32, max_bytes: usize) -> Option<TypeSchema> {
        match self.pool.message(message).known {
            Some(known) if !known.is_object() => {
                let value = fragment::known(known, self.direction, "");
                let text =
                    format!(r#"{{"type":"object","properties":{{"value":{value}}},"required":["value"]}}"#);
                Some(TypeSchema { text, is_pruned: false })
            }
            _ => self.schema(message, max_bytes),
        }
    }

    /// Returns the schema of a method's result; of all results of a stream as the member `messages`. `None` if it is
    /// too large.
    pub(super) fn output(&mut self, message: u32, is_stream: bool) -> Option<TypeSchema> {
        if is_stream { self.stream(message) } else { self.schema(message, MAX_OUTPUT_BYTES) }
    }

    fn schema(&mut self, message: u32, max_bytes: usize) -> Option<TypeSchema> {
        if let Some(known) = self.pool.message(message).known {
            let text = fragment::known(known, self.direction, "");
            return Some(TypeSchema { text, is_pruned: false });
        }
        let AssembledSchema { body, definitions, is_pruned } = self.assembled(message, max_bytes)?;
        let mut text = format!("{{{body}");
        if !definitions.is_empty() {
            let _ = write!(text, r#","$defs":{{{definitions}}}"#);
        }
        text.push('}');
        Some(TypeSchema { text, is_pruned })
    }

    fn stream(&mut self, message: u32) -> Option<TypeSchema> {
        let (items, definitions, is_pruned) = match self.pool.message(message).known {
            Some(known) => (fragment::known(known, self.direction, ""), String::new(), false),
            None => {
                let schema = self.assembled(message, MAX_OUTPUT_BYTES)?;
                (format!("{{{}}}", schema.body), schema.definitions, schema.is_pruned)
            }
        };
        let mut text = format!(
            r#"{{"type":"object","properties":{{"messages":{{"type":"array","items":{items}}},"truncated":{TRUNCATED}}},"required":["messages"]"#
        );
        if !definitions.is_empty() {
            let _ = write!(text, r#","$defs":{{{definitions}}}"#);
        }
        text.push('}');
        Some(TypeSchema { text, is_pruned })
    }

    /// Assembles a schema with as many descriptions as fit: all of them, or those of the arguments themselves, or none.
    fn assembled(&mut self, message: u32, max_bytes: usize) -> Option<AssembledSchema> {
        let root = TypeId::Message(message);
        let whole = self.full.fragment(root);
        if let Some(whole) = &whole {
            let schema = Assembly::new(self.pool, root, max_bytes).assemble(whole, &mut self.full);
            if !schema.is_pruned {
                return Some(schema);
            }
        }
        if let Some(whole) = whole.filter(|whole| whole.bytes <= max_bytes / 2) {
            let schema = Assembly::new(self.pool, root, max_bytes).assemble(&whole, &mut self.terse);
            if !schema.is_pruned || self.direction == Direction::Input {
                return Some(schema);
            }
        }
        let terse = self.terse.fragment(root)?;
        Some(Assembly::new(self.pool, root, max_bytes).assemble(&terse, &mut self.terse))
    }
}
