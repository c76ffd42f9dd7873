//! What may stand in documents, as JSON Schema 2020-12.
//!
//! The schemas are written by hand, for the people whose editors show them; the tests hold them to the readers.

/// The schema of a `ToolRegistry` document.
pub const TOOL_REGISTRY: &str = include_str!("../../../schema/toolregistry.json");

/// The schema of a `Toolyard` document.
pub const TOOLYARD: &str = include_str!("../../../schema/toolyard.json");
