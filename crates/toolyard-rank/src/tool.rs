//! What the ranker is told of a tool.

/// A tool, in the words of its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// What it is called here: what a search finds. Of two tools that are alike to a query, the one with the lesser key comes first.
    pub key: String,
    /// What its server calls it.
    pub name: String,
    /// What people are shown for a name, if there is such a thing.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// The names of its parameters, and what is said of each.
    pub parameters: Vec<(String, String)>,
}
