//! Descriptions and examples of bodies.

use std::borrow::Cow;

use serde_json::Value;
use toolyard_core::text::truncate_at_sentence;

use super::DescriptionReader;
use super::bodies::BodySource;
use super::input::ArgumentSchema;
use crate::operation::BodyKind;
use crate::resolve::NodeRef;
use crate::schema::{example_list, example_value};

/// Maximum number of examples of a body.
const MAX_EXAMPLES: usize = 5;

/// Description of a multipart body whose parts are not described.
const NAMED_PARTS: &str = "The parts of the form by name. A `data:` URL is sent as a file.";

impl<'d> DescriptionReader<'d> {
    /// Adds the texts of a body whose members are arguments. They become part of the tool's description.
    pub(super) fn add_body_texts(&self, source: &BodySource<'d>, input: &mut ArgumentSchema) {
        for text in self.body_descriptions(source) {
            if !input.body_texts.contains(&text) {
                input.body_texts.push(text);
            }
        }
    }

    /// Returns the descriptions of a body, and of its schema.
    pub(super) fn body_descriptions(&self, source: &BodySource<'d>) -> Vec<String> {
        let target = source.schema.and_then(|schema| self.files.resolve(schema));
        let nodes = [Some(source.description), source.schema, target].into_iter().flatten();
        let texts = nodes.filter_map(|at| at.node.text("description")).map(str::trim);
        let mut all: Vec<String> = Vec::new();
        for text in texts.filter(|text| !text.is_empty()) {
            if !all.iter().any(|known| known.eq_ignore_ascii_case(text)) {
                all.push(text.to_owned());
            }
        }
        all
    }

    /// Describes the argument of a whole body with the texts of the body and of its schema.
    pub(super) fn describe_body(
        &self,
        schema: &mut Value,
        source: &BodySource<'d>,
        kind: &BodyKind,
        input: &mut ArgumentSchema,
    ) {
        // The definition of a reference has its own description.
        let is_described = source.schema.is_some_and(|schema| schema.reference().is_some());
        let texts = match is_described {
            true => source
                .description
                .node
                .text("description")
                .into_iter()
                .map(|it| it.trim().to_owned())
                .collect(),
            false => self.body_descriptions(source),
        };
        let mut text = texts.join("\n\n");
        let short = truncate_at_sentence(&text, self.options.texts.argument_chars);
        if let Cow::Owned(short) = short {
            input.cut_texts.push(("body".to_owned(), std::mem::replace(&mut text, short)));
        }
        if matches!(kind, BodyKind::Multipart(parts) if parts.is_empty()) {
            text = format!("{text}\n\n{NAMED_PARTS}").trim_start().to_owned();
        }
        if let (false, Value::Object(keywords)) = (text.is_empty(), schema) {
            keywords.insert("description".to_owned(), text.into());
        }
    }

    /// Returns the first examples of a body: those of its media type, or else of its schema.
    pub(super) fn body_examples(&self, source: &BodySource<'d>) -> Vec<Value> {
        let of_media = source.media.into_iter().flat_map(|media| self.examples(media));
        let mut examples: Vec<Value> = of_media.take(MAX_EXAMPLES).collect();
        if examples.is_empty() {
            let target = source.schema.and_then(|schema| self.files.resolve(schema));
            let nodes: Vec<NodeRef<'d>> =
                [Some(source.description), source.schema, target].into_iter().flatten().collect();
            examples = nodes.into_iter().flat_map(|at| self.schema_examples(at)).take(MAX_EXAMPLES).collect();
        }
        // Some documents have the text of an example instead.
        examples.into_iter().map(opened).collect()
    }

    fn schema_examples(&self, at: NodeRef<'d>) -> Vec<Value> {
        let one = at.get("example").or_else(|| at.get("x-example"));
        let one = one.and_then(|example| example_value(self.files, example));
        let listed = at.get("examples").filter(|examples| !examples.node.items().is_empty());
        let listed = listed.map(|examples| example_list(self.files, examples));
        one.into_iter().chain(listed.into_iter().flatten()).collect()
    }
}

/// Returns the object in a text of JSON, or the value itself.
fn opened(example: Value) -> Value {
    let object = example.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    object.filter(Value::is_object).unwrap_or(example)
}

/// Returns the values of a member in the examples of a body.
pub(super) fn of_member(examples: &[Value], name: &str) -> Vec<Value> {
    examples.iter().filter_map(|example| example.get(name)).cloned().collect()
}
