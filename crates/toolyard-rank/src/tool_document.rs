//! The searchable texts of a tool.

/// A tool as its owner describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolDocument {
    /// The key that a search returns. Of two tools with equal scores, the one with the lesser key comes first.
    pub key: String,
    /// The name on its server.
    pub name: String,
    /// The display name, if there is one.
    pub title: Option<String>,
    /// The description.
    pub description: String,
    /// The names of its parameters, each with its description and possible values, as
    /// [`schema_parameters`](crate::schema_parameters) reads them.
    pub parameters: Vec<(String, String)>,
}
