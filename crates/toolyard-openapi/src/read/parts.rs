//! The parts of forms, and files.

use serde_json::{Value, json};

use super::DescriptionReader;
use super::bodies::BodySource;
use super::media::{self, MediaFamily};
use super::parameters::{describe, style_options};
use crate::document::SpecNode;
use crate::operation::{FormPart, ParameterLocation, PartKind};
use crate::resolve::NodeRef;
use crate::schema::{FlatSchema, flatten};

/// Maximum depth of arrays and alternatives in the search for files.
const MAX_PART_DEPTH: usize = 8;

impl<'d> DescriptionReader<'d> {
    /// Returns the descriptions of a form's members.
    pub(super) fn parts(&self, source: &BodySource<'d>, flat: &FlatSchema<'d>) -> Vec<FormPart> {
        let part = |(name, at): &(&'d str, NodeRef<'d>)| {
            let encoding = source.encoding.and_then(|encoding| encoding.get(name)).map(|at| at.node);
            let media_type = encoding.and_then(|encoding| encoding.text("contentType"));
            let media_type = media_type.map(|types| types.split(',').next().unwrap_or_default().trim());
            let says_style = |node: &&SpecNode<'_>| {
                ["style", "explode", "allowReserved"].iter().any(|word| node.get(word).is_some())
            };
            FormPart {
                name: (*name).to_owned(),
                kind: self.part_kind(*at, media_type),
                media_type: media_type.filter(|media_type| !media_type.contains('*')).map(str::to_owned),
                styled: encoding
                    .filter(says_style)
                    .map(|encoding| style_options(encoding, ParameterLocation::Query)),
            }
        };
        flat.properties.iter().map(part).collect()
    }

    pub(super) fn part_kind(&self, at: NodeRef<'d>, media_type: Option<&str>) -> PartKind {
        self.part_kind_within(at, media_type, MAX_PART_DEPTH)
    }

    fn part_kind_within(&self, at: NodeRef<'d>, media_type: Option<&str>, depth: usize) -> PartKind {
        let Some(at) = self.files.resolve(at).filter(|_| depth > 0) else { return PartKind::Text };
        let flat = flatten(self.files, at);
        let of_type = |kind: &str| flat.keyword("type").is_some_and(|at| at.node.as_str() == Some(kind));
        if is_file(at.node) {
            return PartKind::File;
        }
        if let Some(items) = flat.keyword("items").filter(|_| of_type("array")) {
            return self.part_kind_within(items, media_type, depth - 1);
        }
        // An optional file, as frameworks of Python write it.
        let mut branches = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|name| at.list(name));
        if branches.any(|branch| self.part_kind_within(branch, media_type, depth - 1) == PartKind::File) {
            return PartKind::File;
        }
        let is_bytes = media_type.is_some_and(|media_type| media::family(media_type) == MediaFamily::Other);
        if is_bytes && (of_type("string") || flat.keyword("type").is_none()) {
            return PartKind::File;
        }
        let is_json = media_type.is_some_and(|media_type| media::family(media_type) == MediaFamily::Json);
        let is_nested = of_type("object") || !flat.properties.is_empty();
        if is_json || is_nested { PartKind::Json } else { PartKind::Text }
    }

    /// True if a form contains a file.
    pub(super) fn has_files(&self, schema: NodeRef<'d>) -> bool {
        let Some(target) = self.files.resolve(schema) else { return false };
        flatten(self.files, target)
            .properties
            .iter()
            .any(|(_, at)| self.part_kind(*at, None) == PartKind::File)
    }

    /// The schema of a file argument, or of a list of files.
    pub(super) fn file_argument(&self, at: NodeRef<'d>) -> Value {
        let Some(target) = self.files.resolve(at) else { return json!({}) };
        match target.node.text("type") == Some("array") {
            false => self.file_schema(self.described_file(at)),
            true => {
                let items = target.get("items").and_then(|items| self.described_file(items));
                let mut schema = json!({"type": "array", "items": self.file_schema(items)});
                self.describe_file(&mut schema, self.described_file(at));
                schema
            }
        }
    }

    /// Returns the node that describes a file: beside a reference, at its target, or in an alternative.
    fn described_file(&self, at: NodeRef<'d>) -> Option<NodeRef<'d>> {
        let target = self.files.resolve(at);
        let branches = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .flat_map(|word| target.into_iter().flat_map(move |at| at.list(word)));
        let branches = branches.flat_map(|branch| [Some(branch), self.files.resolve(branch)]);
        [Some(at), target]
            .into_iter()
            .chain(branches)
            .flatten()
            .find(|at| at.node.text("description").is_some())
    }

    fn describe_file(&self, schema: &mut Value, described: Option<NodeRef<'d>>) {
        if let Some(described) = described {
            describe(schema, described.node, self.options.texts.argument_chars);
        }
    }

    /// The schema of a file argument.
    pub(super) fn file_schema(&self, described: Option<NodeRef<'d>>) -> Value {
        let mut schema = json!({"type": "string", "contentEncoding": "base64"});
        self.describe_file(&mut schema, described);
        describe_encoding(&mut schema);
        schema
    }
}

/// True for the schema of a multipart body that is not an object with a member for each part.
pub(super) fn is_single_part(media_type: &str, schema: &SpecNode<'_>) -> bool {
    let is_single = match schema.text("type") {
        Some(kind) => matches!(kind, "string" | "file" | "array" | "integer" | "number" | "boolean"),
        None => is_file(schema),
    };
    is_single && media::family(media_type) == MediaFamily::Multipart
}

/// True if a schema describes bytes.
pub(super) fn is_file(node: &SpecNode<'_>) -> bool {
    let is_bytes = |text: &str| matches!(text, "binary" | "file" | "base64");
    node.text("type") == Some("file")
        || node.text("format").is_some_and(is_bytes)
        || (node.get("contentMediaType").is_some()
            && node.get("contentEncoding").is_none()
            && node.get("properties").is_none())
}

/// Adds the encoding to the description: models ignore `contentEncoding`.
pub(super) fn describe_encoding(schema: &mut Value) {
    let description = schema["description"].as_str().unwrap_or_default();
    let text = if description.is_empty() {
        "Base64-encoded.".to_owned()
    } else {
        format!("{description} (Base64-encoded.)")
    };
    schema["description"] = text.into();
}
