//! The files of a description and the references between them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use crate::document::{SpecNode, SpecSyntaxError};

/// The texts of a description by location: URLs, or paths of files.
///
/// ```
/// # use toolyard_openapi::DescriptionSources;
/// let root = r#"{"openapi": "3.0.3", "paths": {"/pets": {"$ref": "paths/pets.yaml"}}}"#;
/// let mut sources = DescriptionSources::new("https://example.com/api/openapi.json", root);
/// assert_eq!(sources.missing(), ["https://example.com/api/paths/pets.yaml"]);
/// sources.add("https://example.com/api/paths/pets.yaml", "get: {}");
/// assert!(sources.missing().is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct DescriptionSources {
    root: String,
    texts: BTreeMap<String, String>,
}

/// The reason why a description cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// A file is neither JSON nor YAML.
    #[error("{file}: {error}")]
    Syntax {
        /// Name of the file.
        file: String,
        /// The problem and its position.
        error: SpecSyntaxError,
    },
    /// The file is not a service description, or has an unsupported version.
    #[error("{file}: {problem}")]
    InvalidDescription {
        /// Name of the file.
        file: String,
        /// The problem and its location in the file.
        problem: String,
    },
}

impl DescriptionSources {
    /// Creates a description with the location and the text of its root.
    #[must_use]
    pub fn new(root: impl Into<String>, text: impl Into<String>) -> Self {
        let root = root.into();
        Self { texts: BTreeMap::from([(root.clone(), text.into())]), root }
    }

    /// Adds the text of a referenced file. An unavailable file is added as an empty text, so that references to it are
    /// skipped.
    pub fn add(&mut self, file: impl Into<String>, text: impl Into<String>) {
        self.texts.insert(file.into(), text.into());
    }

    /// The location of the root.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Total size of all texts, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.texts.values().map(String::len).sum()
    }

    /// Returns the referenced files that are not present. After they are added, others may be missing.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut files = BTreeSet::new();
        for (file, text) in &self.texts {
            // Nearly all documents are a single file; large ones are not parsed twice for this.
            if refers_to_files(text)
                && let Ok(node) = SpecNode::parse(text)
            {
                collect(&node, &mut |reference| {
                    let (other, _) = reference.split_once('#').unwrap_or((reference, ""));
                    if !other.is_empty() {
                        files.insert(join(file, other));
                    }
                });
            }
        }
        files.into_iter().filter(|file| !self.texts.contains_key(file)).collect()
    }

    /// Returns a digest of all locations and texts.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (&self.root, &self.texts).hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn parse(&self) -> Result<ParsedSources<'_>, DescriptionError> {
        let root = self.texts.get_key_value(&self.root);
        let others = self.texts.iter().filter(|(file, _)| **file != self.root);
        let mut parsed = ParsedSources { files: Vec::with_capacity(self.texts.len()), unusable: Vec::new() };
        for (file, text) in root.into_iter().chain(others) {
            let is_root = *file == self.root;
            let node = match (markup(text), SpecNode::parse(text)) {
                (Some(markup), _) if is_root => {
                    let problem = format!(
                        "it is {markup} instead of a service description: check the URL, and whether it needs credentials"
                    );
                    return Err(DescriptionError::InvalidDescription { file: file.clone(), problem });
                }
                (None, Err(error)) if is_root => {
                    return Err(DescriptionError::Syntax { file: file.clone(), error });
                }
                (Some(markup), _) => Err(format!("it is {markup} instead of JSON or YAML")),
                (None, Err(error)) => Err(error.to_string()),
                (None, Ok(SpecNode::Null)) => Err("it is missing or empty".to_owned()),
                (None, Ok(node)) => Ok(node),
            };
            parsed.files.push((
                file,
                node.unwrap_or_else(|problem| {
                    parsed.unusable.push((file, problem));
                    SpecNode::Null
                }),
            ));
        }
        Ok(parsed)
    }

    /// Returns the text of a file.
    pub(crate) fn text(&self, file: &str) -> &str {
        self.texts.get(file).map_or("", String::as_str)
    }
}

/// The files of a description as trees; the first is its root.
pub(crate) struct ParsedSources<'t> {
    pub(crate) files: Vec<(&'t str, SpecNode<'t>)>,
    /// Other files that are empty or invalid, with their problems.
    pub(crate) unusable: Vec<(&'t str, String)>,
}

/// Returns the kind of a text that is markup: servers answer with a page if a URL is wrong, or a login is needed.
fn markup(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let start: String = text.chars().take(512).collect::<String>().to_ascii_lowercase();
    let is_html = ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| start.contains(tag));
    start.starts_with('<').then_some(if is_html { "an HTML page" } else { "XML" })
}

/// True if there is a `$ref` that does not start with `#`.
fn refers_to_files(text: &str) -> bool {
    text.match_indices("$ref").any(|(at, name)| {
        let rest = text[at + name.len()..].trim_start_matches(['"', '\'', ' ', ':', '\t', '\r', '\n']);
        !rest.starts_with('#')
    })
}

fn collect(node: &SpecNode<'_>, visit: &mut impl FnMut(&str)) {
    for (name, value) in node.members() {
        match (&**name, value) {
            ("$ref", SpecNode::Text(reference)) => visit(reference),
            // A member of an arbitrary value is not a reference.
            ("example" | "examples" | "default" | "enum", _) => {}
            (_, value) => collect(value, visit),
        }
    }
    node.items().iter().for_each(|item| collect(item, visit));
}

/// Resolves `reference` against `base` (RFC 3986, section 5.2), for URLs and paths alike.
#[must_use]
pub fn join(base: &str, reference: &str) -> String {
    if has_scheme(reference) {
        return reference.to_owned();
    }
    let path_at = base.find("://").map_or(0, |at| {
        let authority = at + "://".len();
        base[authority..].find('/').map_or(base.len(), |slash| authority + slash)
    });
    let (origin, path) = base.split_at(path_at);
    if let Some(rest) = reference.strip_prefix("//") {
        let scheme = origin.split("://").next().unwrap_or_default();
        return format!("{scheme}://{rest}");
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let folder = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
    let joined =
        if reference.starts_with('/') { reference.to_owned() } else { format!("{folder}{reference}") };
    let mut segments: Vec<&str> = Vec::new();
    for segment in joined.trim_start_matches('/').split('/') {
        match segment {
            "." => {}
            // There is nothing above the root, but there may be above a relative path.
            ".." if segments.last().is_some_and(|last| *last != "..") => drop(segments.pop()),
            ".." if joined.starts_with('/') || !origin.is_empty() => {}
            segment => segments.push(segment),
        }
    }
    let slash = if joined.starts_with('/') || !origin.is_empty() { "/" } else { "" };
    format!("{origin}{slash}{}", segments.join("/"))
}

/// Returns the origin of a URL: scheme and authority without user information.
#[must_use]
pub fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(format!("{scheme}://{host}").to_ascii_lowercase())
}

pub(crate) fn has_scheme(reference: &str) -> bool {
    let scheme = reference.split_once(':').map_or("", |(scheme, _)| scheme);
    // A single letter is a drive of Windows.
    scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_urls() {
        let check =
            |base, reference, expected| assert_eq!(join(base, reference), expected, "{base} {reference}");
        check("https://a.b/c/d.json", "e.json", "https://a.b/c/e.json");
        check("https://a.b/c/d.json?x=/y", "./e/f.json", "https://a.b/c/e/f.json");
        check("https://a.b/c/d.json", "../e.json", "https://a.b/e.json");
        check("https://a.b/c/d.json", "../../../e.json", "https://a.b/e.json");
        check("https://a.b/c/d.json", "/e.json", "https://a.b/e.json");
        check("https://a.b", "e.json", "https://a.b/e.json");
        check("https://a.b/c", "http://x/y", "http://x/y");
        check("https://a.b/c", "//x/y", "https://x/y");
        check("/etc/api/openapi.yaml", "schemas/pet.yaml", "/etc/api/schemas/pet.yaml");
        check("/etc/api/openapi.yaml", "../pet.yaml", "/etc/pet.yaml");
        check("api/openapi.yaml", "../../pet.yaml", "../pet.yaml");
        check("openapi.yaml", "pet.yaml", "pet.yaml");
    }

    #[test]
    fn only_other_files_are_missing() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(DescriptionSources::new("/a/b.yaml", text).missing(), expected)
        };
        check("a: {$ref: '#/b'}", &[]);
        check("a: {$ref: 'c.yaml#/b'}\nd: {$ref: 'c.yaml#/e'}", &["/a/c.yaml"]);
        check("a: {$ref: '#/b'}\nexample: {$ref: 'c.yaml'}", &[]);
        check("a: {$ref: 'b.yaml#/c'}", &[]);
    }
}
