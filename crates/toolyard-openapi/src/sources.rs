//! The files of a description, which refer to one another.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use crate::document::{Node, SyntaxError};

/// The texts of a description, by where they are: URLs, or paths of files.
///
/// ```
/// # use toolyard_openapi::Sources;
/// let root = r#"{"openapi": "3.0.3", "paths": {"/pets": {"$ref": "paths/pets.yaml"}}}"#;
/// let mut sources = Sources::new("https://example.com/api/openapi.json", root);
/// assert_eq!(sources.missing(), ["https://example.com/api/paths/pets.yaml"]);
/// sources.add("https://example.com/api/paths/pets.yaml", "get: {}");
/// assert!(sources.missing().is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sources {
    root: String,
    texts: BTreeMap<String, String>,
}

/// Why nothing can be made of a description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A file is neither JSON nor YAML.
    #[error("{file}: {error}")]
    Syntax {
        /// Which file.
        file: String,
        /// What is wrong, and where.
        error: SyntaxError,
    },
    /// It is something else, or of a version that is not known.
    #[error("{file}: {problem}")]
    NoDescription {
        /// Which file.
        file: String,
        /// What was expected, and at which place of the file.
        problem: String,
    },
}

impl Sources {
    /// A description that begins at `root`, with this text.
    #[must_use]
    pub fn new(root: impl Into<String>, text: impl Into<String>) -> Self {
        let root = root.into();
        Self { texts: BTreeMap::from([(root.clone(), text.into())]), root }
    }

    /// Adds the text of a file that is referred to. One that is not to be had is added empty: what refers to it is left
    /// out.
    pub fn add(&mut self, file: impl Into<String>, text: impl Into<String>) {
        self.texts.insert(file.into(), text.into());
    }

    /// Where the description begins.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.root
    }

    /// How large all texts are, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.texts.values().map(String::len).sum()
    }

    /// The files that are referred to and not here. When they have been added, others may be missing.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut files = BTreeSet::new();
        for (file, text) in &self.texts {
            // Nearly all documents are one file, and large ones are not read twice for it.
            if refers_to_files(text)
                && let Ok(node) = Node::parse(text)
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

    /// The same for the same files with the same texts.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (&self.root, &self.texts).hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn parse(&self) -> Result<Vec<(&str, Node<'_>)>, Unreadable> {
        let root = self.texts.get_key_value(&self.root);
        let others = self.texts.iter().filter(|(file, _)| **file != self.root);
        let mut files = Vec::with_capacity(self.texts.len());
        for (file, text) in root.into_iter().chain(others) {
            match Node::parse(text) {
                Ok(node) => files.push((file.as_str(), node)),
                // What refers to it is left out, and said.
                Err(_) if *file != self.root => files.push((file, Node::Null)),
                Err(error) => return Err(Unreadable::Syntax { file: file.clone(), error }),
            }
        }
        Ok(files)
    }
}

/// Whether there is a `$ref` that does not begin with `#`.
fn refers_to_files(text: &str) -> bool {
    text.match_indices("$ref").any(|(at, name)| {
        let rest = text[at + name.len()..].trim_start_matches(['"', '\'', ' ', ':', '\t', '\r', '\n']);
        !rest.starts_with('#')
    })
}

fn collect(node: &Node<'_>, found: &mut impl FnMut(&str)) {
    for (name, value) in node.members() {
        match (&**name, value) {
            ("$ref", Node::Text(reference)) => found(reference),
            // A value that happens to have such a member refers to nothing.
            ("example" | "examples" | "default" | "enum", _) => {}
            (_, value) => collect(value, found),
        }
    }
    node.items().iter().for_each(|item| collect(item, found));
}

/// Where `reference` is, as `base` writes it (RFC 3986, section 5.2): URLs and paths are the same here.
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
            // Above the root there is nothing; above a relative path there may be.
            ".." if segments.last().is_some_and(|last| *last != "..") => drop(segments.pop()),
            ".." if joined.starts_with('/') || !origin.is_empty() => {}
            segment => segments.push(segment),
        }
    }
    let slash = if joined.starts_with('/') || !origin.is_empty() { "/" } else { "" };
    format!("{origin}{slash}{}", segments.join("/"))
}

/// The scheme and the authority of a URL: which server it is at.
#[must_use]
pub fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(format!("{scheme}://{host}").to_ascii_lowercase())
}

pub(crate) fn has_scheme(reference: &str) -> bool {
    let scheme = reference.split_once(':').map_or("", |(scheme, _)| scheme);
    // One letter is a drive of Windows.
    scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_joined_as_urls_are() {
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
        let check =
            |text: &str, expected: &[&str]| assert_eq!(Sources::new("/a/b.yaml", text).missing(), expected);
        check("a: {$ref: '#/b'}", &[]);
        check("a: {$ref: 'c.yaml#/b'}\nd: {$ref: 'c.yaml#/e'}", &["/a/c.yaml"]);
        check("a: {$ref: '#/b'}\nexample: {$ref: 'c.yaml'}", &[]);
        check("a: {$ref: 'b.yaml#/c'}", &[]);
    }
}
