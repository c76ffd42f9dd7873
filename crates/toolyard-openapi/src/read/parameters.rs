//! The parameters of an operation.

use serde_json::{Value, json};
use toolyard_core::text::truncate_at_sentence;

use super::input::ArgumentSchema;
use super::paths::OperationSite;
use super::{DescriptionReader, FaultLocation, OpenApiVersion, words};
use crate::document::SpecNode;
use crate::operation::{OperationParameter, ParameterLocation, ParameterStyle, StyleOptions, ValueEncoding};
use crate::resolve::NodeRef;
use crate::schema::{example_list, example_value, flatten};

/// Headers that are not arguments: those that other parts of the description set (OpenAPI 3.1, section 4.8.12.2), and
/// those of the connection and the framing of messages (RFC 9110, section 7, and RFC 9112), which HTTP itself sets.
const RESERVED: [&str; 15] = [
    "accept",
    "content-type",
    "authorization",
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The declaration of a parameter and its location.
pub(super) struct DeclaredParameter<'d> {
    pub(super) at: NodeRef<'d>,
    pub(super) name: &'d str,
    pub(super) location: &'d str,
    pub(super) fault_location: FaultLocation,
}

impl<'d> DescriptionReader<'d> {
    /// Returns all parameters of an operation: those of its path, which its own override.
    pub(super) fn declared_parameters(&mut self, site: &OperationSite<'d>) -> Vec<DeclaredParameter<'d>> {
        let mut all: Vec<DeclaredParameter<'d>> = Vec::new();
        for holder in [site.path_item, site.operation] {
            let from = all.len();
            for (index, at) in holder.list("parameters").enumerate() {
                let fault_location = site.fault_location.at("parameters").at(index);
                let Some(at) = self.resolve(at, &fault_location, "the parameter is skipped") else {
                    continue;
                };
                let (Some(name), Some(location)) = (at.node.text("name"), at.node.text("in")) else {
                    self.fault(&fault_location, "`name` or `in` is missing: the parameter is skipped");
                    continue;
                };
                let is_same =
                    |other: &DeclaredParameter<'_>| other.name == name && other.location == location;
                let Some(other) = all.iter().position(is_same) else {
                    all.push(DeclaredParameter { at, name, location, fault_location });
                    continue;
                };
                if other >= from {
                    self.fault(
                        &fault_location,
                        format!("duplicate parameter `{name}`: the last one is used"),
                    );
                }
                all[other] = DeclaredParameter { at, name, location, fault_location };
            }
        }
        all
    }

    /// Adds the parameters that are not part of the body as arguments.
    pub(super) fn parameters(
        &mut self,
        site: &OperationSite<'d>,
        declarations: &[DeclaredParameter<'d>],
        input: &mut ArgumentSchema,
    ) -> Vec<OperationParameter> {
        let mut parameters = Vec::new();
        for parameter in declarations {
            let Some(location) = self.location(site, parameter) else { continue };
            if let Some(scheme) = self.filling_scheme(parameter) {
                input.filled.push(scheme);
                continue;
            }
            let required = location == ParameterLocation::Path || parameter.at.node.is_true("required");
            let schema = self.parameter_schema(parameter.at, required, input);
            let argument = input.add(parameter.name, parameter.location, schema, required);
            self.note_cut_text(parameter.at, &argument, input);
            let encoding = self.value_encoding(parameter.at, location);
            let name = parameter.name.to_owned();
            parameters.push(OperationParameter { argument, name, location, encoding, required });
        }
        for name in placeholders(site.path) {
            let is_declared = |parameter: &OperationParameter| {
                parameter.location == ParameterLocation::Path && parameter.name == name
            };
            if parameters.iter().any(is_declared) {
                continue;
            }
            self.fault(
                &site.fault_location,
                format!("undeclared path parameter `{{{name}}}`: it is treated as a string"),
            );
            let argument = input.add(name, "path", json!({"type": "string"}), true);
            let encoding = default_encoding(ParameterLocation::Path);
            parameters.push(OperationParameter {
                argument,
                name: name.to_owned(),
                location: ParameterLocation::Path,
                encoding,
                required: true,
            });
        }
        parameters
    }

    /// Returns the location of a parameter; `None` if it cannot be sent.
    fn location(
        &mut self,
        site: &OperationSite<'d>,
        parameter: &DeclaredParameter<'d>,
    ) -> Option<ParameterLocation> {
        match parameter.location {
            "path" if placeholders(site.path).any(|name| name == parameter.name) => {
                Some(ParameterLocation::Path)
            }
            "path" => {
                let problem = format!("no `{{{}}}` in the path: the parameter is skipped", parameter.name);
                self.fault(&parameter.fault_location, problem);
                None
            }
            "query" => Some(ParameterLocation::Query),
            "querystring" => Some(ParameterLocation::QueryString),
            "header" if RESERVED.contains(&&*parameter.name.to_ascii_lowercase()) => None,
            "header" => Some(ParameterLocation::Header),
            "cookie" => Some(ParameterLocation::Cookie),
            "body" | "formData" if self.version == OpenApiVersion::V2 => None,
            other => {
                let problem = format!("invalid `in` value `{other}`: the parameter is skipped");
                self.fault(&parameter.fault_location, problem);
                None
            }
        }
    }

    /// Writes the schema of a parameter's argument.
    pub(super) fn parameter_schema(
        &mut self,
        at: NodeRef<'d>,
        required: bool,
        input: &mut ArgumentSchema,
    ) -> Value {
        let content = at.get("content").and_then(|content| content.members().next());
        let schema = match (self.version, content) {
            (OpenApiVersion::V2, _) => Some(at),
            (_, Some((_, media))) => media.get("schema"),
            (_, None) => at.get("schema"),
        };
        let mut value = match schema {
            Some(schema) if self.is_never_sent(schema) => json!({"type": "string"}),
            Some(schema) => self.requests.write(schema, required, &mut input.root),
            None => json!({}),
        };
        describe(&mut value, at.node, self.options.texts.argument_chars);
        let holders =
            [Some(at), content.map(|(_, media)| media).filter(|_| self.version != OpenApiVersion::V2)];
        let examples = holders.into_iter().flatten().flat_map(|holder| self.examples(holder)).collect();
        words::add_examples(&mut value, examples, self.options.texts.example_bytes);
        value
    }

    /// Returns the examples of a parameter or a media type.
    pub(super) fn examples(&self, at: NodeRef<'d>) -> Vec<Value> {
        let one = at.get("example").or_else(|| at.get("x-example"));
        let one = one.and_then(|example| example_value(self.files, example));
        let listed = at.get("examples").map(|examples| example_list(self.files, examples));
        one.into_iter().chain(listed.into_iter().flatten()).collect()
    }

    /// True for an object whose members are all `readOnly`, as some generators describe a version: the service reads it
    /// from a text.
    fn is_never_sent(&self, schema: NodeRef<'d>) -> bool {
        let Some(target) = self.files.resolve(schema) else { return false };
        let flat = flatten(self.files, target);
        let has_parts = ["allOf", "anyOf", "oneOf"].iter().any(|word| flat.keyword(word).is_some());
        !has_parts
            && !flat.properties.is_empty()
            && flat.properties.iter().all(|(_, at)| self.requests.is_omitted(*at))
    }

    /// Notes the description of an argument that has only its beginning.
    fn note_cut_text(&self, at: NodeRef<'d>, argument: &str, input: &mut ArgumentSchema) {
        let Some(text) = at.node.text("description").map(str::trim) else { return };
        if text.chars().nth(self.options.texts.argument_chars).is_some() {
            input.cut_texts.push((argument.to_owned(), text.to_owned()));
        }
    }

    fn value_encoding(&self, at: NodeRef<'d>, location: ParameterLocation) -> ValueEncoding {
        if self.version == OpenApiVersion::V2 {
            return ValueEncoding::Styled(collection_format(at.node, location));
        }
        if let Some((media_type, _)) = at.get("content").and_then(|content| content.members().next()) {
            return ValueEncoding::Content(media_type.to_owned());
        }
        ValueEncoding::Styled(style_options(at.node, location))
    }
}

/// Overrides the description of a type with that of its parameter.
pub(super) fn describe(schema: &mut Value, parameter: &SpecNode<'_>, max_chars: usize) {
    let text = parameter.text("description").map(str::trim).filter(|text| !text.is_empty());
    let Some(text) = text.map(|text| truncate_at_sentence(text, max_chars)) else { return };
    match schema {
        Value::Object(members) => {
            members.insert("description".to_owned(), text.into());
        }
        // The schema `true`: anything.
        schema => *schema = json!({"description": text}),
    }
}

/// Reads the style of a parameter or an encoding, with the defaults of its location.
pub(super) fn style_options(node: &SpecNode<'_>, location: ParameterLocation) -> StyleOptions {
    let ValueEncoding::Styled(default) = default_encoding(location) else { return FORM_STYLE };
    let style = node.text("style").and_then(style).unwrap_or(default.style);
    let explode = match node.get("explode") {
        Some(SpecNode::Bool(explode)) => *explode,
        _ => matches!(style, ParameterStyle::Form | ParameterStyle::Cookie | ParameterStyle::DeepObject),
    };
    StyleOptions { style, explode, allow_reserved: node.is_true("allowReserved") }
}

/// The default of queries and forms.
pub(super) const FORM_STYLE: StyleOptions =
    StyleOptions { style: ParameterStyle::Form, explode: true, allow_reserved: false };

const SIMPLE_STYLE: StyleOptions =
    StyleOptions { style: ParameterStyle::Simple, explode: false, allow_reserved: false };

fn default_encoding(location: ParameterLocation) -> ValueEncoding {
    match location {
        ParameterLocation::Path | ParameterLocation::Header => ValueEncoding::Styled(SIMPLE_STYLE),
        ParameterLocation::Query | ParameterLocation::Cookie => ValueEncoding::Styled(FORM_STYLE),
        ParameterLocation::QueryString => {
            ValueEncoding::Content("application/x-www-form-urlencoded".to_owned())
        }
    }
}

fn style(name: &str) -> Option<ParameterStyle> {
    Some(match name {
        "simple" => ParameterStyle::Simple,
        "label" => ParameterStyle::Label,
        "matrix" => ParameterStyle::Matrix,
        "form" => ParameterStyle::Form,
        "spaceDelimited" => ParameterStyle::SpaceDelimited,
        "pipeDelimited" => ParameterStyle::PipeDelimited,
        "deepObject" => ParameterStyle::DeepObject,
        "cookie" => ParameterStyle::Cookie,
        _ => return None,
    })
}

/// Reads `collectionFormat` of OpenAPI 2.
pub(super) fn collection_format(node: &SpecNode<'_>, location: ParameterLocation) -> StyleOptions {
    let plain = match location {
        ParameterLocation::Path | ParameterLocation::Header => SIMPLE_STYLE,
        _ => StyleOptions { explode: false, ..FORM_STYLE },
    };
    match node.text("collectionFormat") {
        Some("multi") => StyleOptions { explode: true, ..plain },
        Some("ssv") => StyleOptions { style: ParameterStyle::SpaceDelimited, ..plain },
        Some("tsv") => StyleOptions { style: ParameterStyle::TabDelimited, ..plain },
        Some("pipes") => StyleOptions { style: ParameterStyle::PipeDelimited, ..plain },
        _ => plain,
    }
}

/// Returns the names in braces. Templates of RFC 6570 with queries, which some documents contain, are not names.
fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    names
        .filter(|name| !name.starts_with(['?', '&', '#']))
        .map(|name| name.trim_start_matches('+').trim_end_matches('*'))
}
