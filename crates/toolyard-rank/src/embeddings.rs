//! Embeddings of tools and queries: texts as vectors whose directions are near if the texts mean the same. An endpoint
//! with the API of OpenAI computes them; here are the texts that it gets, and the reading and comparison of its vectors.

mod response;

use std::sync::Arc;

use crate::tool_document::ToolDocument;
use crate::words;

pub use self::response::{EmbeddingError, parse_embeddings, response_limit};

/// Maximum number of dimensions of a vector.
pub const MAX_DIMENSIONS: usize = 8192;

/// Maximum length of a text for the endpoint, in bytes: about 500 tokens, more than most models read.
const MAX_TEXT_BYTES: usize = 2000;
/// Maximum length of the description of a tool and of one of its parameters in that text, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1200;
const MAX_PARAMETER_BYTES: usize = 100;

/// A vector of length 1.
pub type EmbeddingVector = Arc<[f32]>;

/// Returns the text of a tool for the endpoint: the names of its server and of the tool, its title and description, and
/// its parameters. It is never blank.
pub fn embedded_text(server: &str, tool: &ToolDocument) -> String {
    let mut text = spaced(&tool.name);
    for more in tool.title.iter().map(String::as_str).chain([&*spaced(server)]) {
        if !more.is_empty() {
            text += &format!(" ({more})");
        }
    }
    let description = words::truncate(tool.description.trim(), MAX_DESCRIPTION_BYTES);
    if !description.is_empty() {
        text += &format!(": {description}");
    }
    for (at, (name, about)) in tool.parameters.iter().enumerate() {
        text += if at == 0 { "\nParameters: " } else { ", " };
        text += &spaced(name);
        let about = words::truncate(about.trim(), MAX_PARAMETER_BYTES);
        if !about.is_empty() {
            text += &format!(" ({about})");
        }
    }
    words::truncate(&text, MAX_TEXT_BYTES).to_owned()
}

/// Returns the part of a query that the endpoint gets.
pub fn embedded_query(query: &str) -> &str {
    words::truncate(query.trim(), MAX_TEXT_BYTES)
}

/// The words of an identifier, separated by spaces.
fn spaced(name: &str) -> String {
    let mut spaced = String::new();
    words::each_word(name, |word| {
        let space = if spaced.is_empty() { "" } else { " " };
        spaced.extend([space, word]);
    });
    if spaced.is_empty() { "-".to_owned() } else { spaced }
}

/// Tools with their vectors. All vectors have the same number of dimensions.
#[derive(Clone, Default)]
pub struct VectorIndex {
    tools: Vec<(Arc<str>, EmbeddingVector)>,
}

impl VectorIndex {
    /// Returns an index of these tools, by their keys.
    pub fn new(tools: Vec<(Arc<str>, EmbeddingVector)>) -> Self {
        Self { tools }
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// The number of dimensions, unless there are no tools.
    pub fn dimensions(&self) -> Option<usize> {
        self.tools.first().map(|(_, vector)| vector.len())
    }

    /// `true` if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the keys of all tools whose vectors have as many dimensions as that of the query, the most similar first and by key if
    /// similarities are equal.
    pub fn nearest(&self, query: &[f32]) -> Vec<Arc<str>> {
        let comparable = self.tools.iter().filter(|(_, vector)| vector.len() == query.len());
        let mut similar: Vec<(f32, &Arc<str>)> =
            comparable.map(|(key, vector)| (dot(vector, query), key)).collect();
        similar.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        similar.into_iter().map(|(_, key)| Arc::clone(key)).collect()
    }
}

/// The scalar product, in lanes that a compiler turns into vector instructions.
fn dot(one: &[f32], other: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0_f32; LANES];
    let (ones, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f32 = ones.remainder().iter().zip(others.remainder()).map(|(one, other)| one * other).sum();
    for (one, other) in ones.zip(others) {
        for lane in 0..LANES {
            sums[lane] += one[lane] * other[lane];
        }
    }
    rest + sums.iter().sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, title: Option<&str>, description: &str, parameters: &[(&str, &str)]) -> ToolDocument {
        let owned = |text: &str| text.to_owned();
        ToolDocument {
            key: owned(name),
            name: owned(name),
            title: title.map(owned),
            description: owned(description),
            parameters: parameters.iter().map(|(name, about)| (owned(name), owned(about))).collect(),
        }
    }

    #[test]
    fn text_of_a_tool() {
        let check = |server: &str, tool: &ToolDocument, expected: &str| {
            assert_eq!(embedded_text(server, tool), expected);
        };
        let parameters = [("eventId", "Id of the event."), ("start", "")];
        check(
            "acme-calendar",
            &tool("moveEvent", Some("Reschedule"), " Moves an event. ", &parameters),
            "move event (Reschedule) (acme calendar): Moves an event.\nParameters: event id (Id of the event.), start",
        );
        check("", &tool("", None, "", &[]), "- (-)");
    }

    #[test]
    fn texts_are_bounded() {
        let many: Vec<(&str, &str)> = vec![("parameter", "about"); 10_000];
        let long = tool("name", None, &"é".repeat(10_000), &many);
        let text = embedded_text("server", &long);
        assert!(text.len() <= MAX_TEXT_BYTES && text.contains("parameter (about)"), "{} bytes", text.len());
        assert_eq!(embedded_query(&format!("  {}", "é".repeat(10_000))).len(), MAX_TEXT_BYTES);
        assert_eq!(embedded_query(" a b "), "a b");
    }

    #[test]
    fn nearest_tools_come_first() {
        let index = |tools: &[(&str, &[f32])]| {
            VectorIndex::new(tools.iter().map(|(key, vector)| ((*key).into(), (*vector).into())).collect())
        };
        let check = |tools: &[(&str, &[f32])], query: &[f32], expected: &str| {
            assert_eq!(index(tools).nearest(query).join(" "), expected);
        };
        let tools: [(&str, &[f32]); 4] =
            [("x", &[1.0, 0.0]), ("b", &[0.0, 1.0]), ("a", &[0.0, 1.0]), ("z", &[0.0, -1.0])];
        check(&tools, &[0.6, 0.8], "a b x z");
        check(&tools, &[1.0, 0.0, 0.0], "");
        check(&[], &[1.0], "");
        let long: Vec<f32> = (0..19).map(|number| number as f32).collect();
        let all: f32 = long.iter().map(|value| value * value).sum();
        assert!((dot(&long, &long) - all).abs() < 0.01);
    }
}
