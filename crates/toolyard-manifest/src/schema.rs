//! JSON schemas (2020-12) of the documents.
//!
//! The schemas are written by hand, for authors whose editors show them; tests compare them with the readers.

/// The schema of a `ToolRegistry` document.
pub const TOOL_REGISTRY: &str = include_str!("../../../schema/toolregistry.json");

/// The schema of a `Toolyard` document.
pub const TOOLYARD: &str = include_str!("../../../schema/toolyard.json");
