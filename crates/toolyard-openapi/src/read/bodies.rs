//! The body of an operation.

use serde_json::{Value, json};

use super::input::{ArgumentSchema, BodyNeeds};
use super::media::{self, MediaFamily};
use super::parameters::{DeclaredParameter, collection_format};
use super::parts::{describe_encoding, is_file, is_single_part};
use super::paths::OperationSite;
use super::{DescriptionReader, OpenApiVersion, body_texts, words, xml};
use crate::document::SpecNode;
use crate::operation::{BodyContent, BodyKind, FormPart, ParameterLocation, PartKind, RequestBody};
use crate::resolve::NodeRef;
use crate::schema::{FlatSchema, flatten};

/// Maximum number of alternatives of a body whose members the description of a tool names.
const MAX_NAMED_ALTERNATIVES: usize = 4;

/// Maximum number of alternatives of a body that are compared with one another.
const MAX_COMPARED_ALTERNATIVES: usize = 64;

/// The operation cannot be called; a fault has the reason.
pub(super) struct UnusableOperation;

impl<'d> DescriptionReader<'d> {
    /// Reads the body of OpenAPI 3.
    pub(super) fn body(
        &mut self,
        site: &OperationSite<'d>,
        input: &mut ArgumentSchema,
    ) -> Result<Option<RequestBody>, UnusableOperation> {
        let Some(request) = site.operation.get("requestBody") else { return Ok(None) };
        let fault_location = site.fault_location.at("requestBody");
        let Some(request) = self.resolve(request, &fault_location, "the operation is skipped") else {
            return Err(UnusableOperation);
        };
        let content = request.get("content").into_iter().flat_map(NodeRef::members);
        let content: Vec<_> =
            content.map(|(media_type, at)| (media_type, self.files.resolve(at).unwrap_or(at))).collect();
        let has_files = |at: &NodeRef<'d>| at.get("schema").is_some_and(|schema| self.has_files(schema));
        let multipart =
            content.iter().find(|(name, at)| media::family(name) == MediaFamily::Multipart && has_files(at));
        let json_first = media::preferred(content.iter().map(|(name, at)| (*name, *at)));
        // A form with files has no other encoding.
        let chosen = match (json_first, multipart) {
            (Some((name, _)), Some((multipart, at))) if media::family(name) == MediaFamily::Form => {
                Some((*multipart, *at))
            }
            (chosen, _) => chosen,
        };
        let Some((media_type, at)) = chosen else { return Ok(None) };
        let source = BodySource {
            media_type,
            schema: at.get("schema"),
            encoding: at.get("encoding"),
            media: Some(at),
            description: request,
        };
        Ok(Some(self.body_of(&source, request.node.is_true("required"), input)))
    }

    /// Reads the body of OpenAPI 2, which consists of one or several parameters.
    pub(super) fn body_of_version_2(
        &mut self,
        site: &OperationSite<'d>,
        parameters: &[DeclaredParameter<'d>],
        input: &mut ArgumentSchema,
    ) -> Result<Option<RequestBody>, UnusableOperation> {
        let of =
            |location: &str| parameters.iter().filter(|parameter| parameter.location == location).collect();
        let (bodies, fields): (Vec<&DeclaredParameter<'d>>, Vec<&DeclaredParameter<'d>>) =
            (of("body"), of("formData"));
        let consumes = site.operation.get("consumes").or_else(|| self.files.root().get("consumes"));
        let consumes: Vec<&str> =
            consumes.map_or(&[][..], |at| at.node.items()).iter().filter_map(SpecNode::as_str).collect();
        match (&*bodies, &*fields) {
            ([], []) => Ok(None),
            ([body], []) => {
                let media_type = media::preferred(consumes.iter().map(|name| (*name, ())))
                    .map_or("application/json", |(name, ())| name);
                let source = BodySource {
                    media_type,
                    schema: body.at.get("schema"),
                    encoding: None,
                    media: None,
                    description: body.at,
                };
                Ok(Some(self.body_of(&source, body.at.node.is_true("required"), input)))
            }
            ([], fields) => Ok(Some(self.form_of_version_2(fields, &consumes, input))),
            ([_, other, ..], _) => {
                self.fault(&other.fault_location, "more than one body: the operation is skipped");
                Err(UnusableOperation)
            }
            ([body], _) => {
                self.fault(
                    &body.fault_location,
                    "form fields in addition to a body: the operation is skipped",
                );
                Err(UnusableOperation)
            }
        }
    }

    fn form_of_version_2(
        &mut self,
        fields: &[&DeclaredParameter<'d>],
        consumes: &[&str],
        input: &mut ArgumentSchema,
    ) -> RequestBody {
        let mut parts = Vec::new();
        let mut named = Vec::new();
        let mut is_required = false;
        for field in fields {
            let node = field.at.node;
            let kind = if node.text("type") == Some("file") { PartKind::File } else { PartKind::Text };
            let schema = match kind {
                PartKind::File => self.file_schema(Some(field.at)),
                _ => self.parameter_schema(field.at, node.is_true("required"), input),
            };
            is_required |= node.is_true("required");
            named.push((
                input.add(field.name, "form", schema, node.is_true("required")),
                field.name.to_owned(),
            ));
            let styled = (node.text("type") == Some("array"))
                .then(|| collection_format(node, ParameterLocation::Query));
            parts.push(FormPart { name: field.name.to_owned(), kind, media_type: None, styled });
        }
        let has_files = parts.iter().any(|part| part.kind == PartKind::File);
        let is = |family| move |name: &&&str| media::family(name) == family;
        let multipart = consumes.iter().find(is(MediaFamily::Multipart)).copied();
        let form = consumes.iter().find(is(MediaFamily::Form)).copied();
        let (media_type, kind) = match (form, multipart) {
            (Some(form), _) if !has_files => (form, BodyKind::Form(parts)),
            (_, Some(multipart)) => (multipart, BodyKind::Multipart(parts)),
            _ if has_files => ("multipart/form-data", BodyKind::Multipart(parts)),
            _ => ("application/x-www-form-urlencoded", BodyKind::Form(parts)),
        };
        input.others = Some(false.into());
        RequestBody {
            media_type: media::concrete(media_type),
            kind,
            content: BodyContent::Members { named, accepts_others: false },
            required: is_required,
        }
    }

    fn body_of(
        &mut self,
        source: &BodySource<'d>,
        required: bool,
        input: &mut ArgumentSchema,
    ) -> RequestBody {
        let target = source.schema.and_then(|schema| self.files.resolve(schema));
        // Since OpenAPI 3.1 the siblings of a reference apply: the combination is not a plain object.
        let is_mixed = self.version == OpenApiVersion::V31
            && source.schema.is_some_and(|schema| {
                schema.reference().is_some() && schema.node.get("properties").is_some()
            });
        let flat = target.filter(|_| !is_mixed).map(|target| flatten(self.files, target)).unwrap_or_default();
        if let Some(target) = target.filter(|target| is_single_part(source.media_type, target.node)) {
            return self.single_part(source, target, required, input);
        }
        let kind = self.kind(source, target, &flat);
        let parts: &[FormPart] = match &kind {
            BodyKind::Form(parts) | BodyKind::Multipart(parts) => parts,
            _ => &[],
        };
        let has_members = !matches!(kind, BodyKind::Text | BodyKind::Bytes) && is_plain_object(&flat);
        let content = match has_members {
            true => {
                self.add_body_texts(source, input);
                self.members(source, &flat, parts, required, input)
            }
            false => {
                input.others = Some(false.into());
                let argument = self.whole_body(source, &kind, required, input);
                if !required {
                    input.body_needs = Some((argument.clone(), self.body_needs(&flat)));
                }
                BodyContent::Argument(argument)
            }
        };
        RequestBody { media_type: media::concrete(source.media_type), kind, content, required }
    }

    /// Returns the members that a body needs, and those of its alternatives if there are a few.
    fn body_needs(&self, flat: &FlatSchema<'d>) -> BodyNeeds {
        let mut always = self.needed_members(flat);
        let branches = ["oneOf", "anyOf"].into_iter().find_map(|name| flat.keyword(name));
        let needed = |branch| {
            let target = self.files.resolve(branch);
            target.map(|target| self.needed_members(&flatten(self.files, target))).unwrap_or_default()
        };
        let mut alternatives: Vec<Vec<String>> = Vec::new();
        for branch in branches.into_iter().flat_map(NodeRef::items) {
            let needed = needed(branch);
            if !alternatives.contains(&needed) {
                alternatives.push(needed);
            }
            if alternatives.len() > MAX_COMPARED_ALTERNATIVES {
                return BodyNeeds { always, alternatives: Vec::new() };
            }
        }
        if let Some((first, others)) = alternatives.split_first() {
            let is_common = |name: &&String| others.iter().all(|names| names.contains(*name));
            let common: Vec<String> =
                first.iter().filter(is_common).filter(|name| !always.contains(*name)).cloned().collect();
            always.extend(common);
        }
        alternatives.iter_mut().for_each(|names| names.retain(|name| !always.contains(name)));
        if alternatives.len() > MAX_NAMED_ALTERNATIVES || alternatives.iter().any(Vec::is_empty) {
            alternatives.clear();
        }
        BodyNeeds { always, alternatives }
    }

    fn needed_members(&self, flat: &FlatSchema<'d>) -> Vec<String> {
        let needed = flat.required.iter().filter(|name| !self.is_omitted_member(flat, name));
        needed.map(|name| (*name).to_owned()).collect()
    }

    fn is_omitted_member(&self, flat: &FlatSchema<'d>, name: &str) -> bool {
        flat.properties.iter().any(|(known, at)| *known == name && self.requests.is_omitted(*at))
    }

    /// Reads a multipart body whose schema is that of its only part. The document does not name it; services expect
    /// `file` for bytes.
    fn single_part(
        &mut self,
        source: &BodySource<'d>,
        target: NodeRef<'d>,
        required: bool,
        input: &mut ArgumentSchema,
    ) -> RequestBody {
        let kind = self.part_kind(target, None);
        let (name, schema) = match kind {
            PartKind::File => ("file", self.file_argument(target)),
            _ => ("body", self.requests.write(target, required, &mut input.root)),
        };
        self.add_body_texts(source, input);
        let argument = input.add(name, "body", schema, required);
        input.others = Some(false.into());
        let named = vec![(argument, name.to_owned())];
        let part = FormPart { name: name.to_owned(), kind, media_type: None, styled: None };
        RequestBody {
            media_type: media::concrete(source.media_type),
            kind: BodyKind::Multipart(vec![part]),
            content: BodyContent::Members { named, accepts_others: false },
            required,
        }
    }

    fn kind(&self, source: &BodySource<'d>, target: Option<NodeRef<'d>>, flat: &FlatSchema<'d>) -> BodyKind {
        let is_text = target.is_some_and(|target| target.node.text("type") == Some("string"));
        let is_octets = source.media_type.starts_with("application/octet-stream");
        match media::family(source.media_type) {
            MediaFamily::Json => BodyKind::Json,
            // A form that the caller has encoded.
            MediaFamily::Form if is_text => BodyKind::Text,
            MediaFamily::Form => BodyKind::Form(self.parts(source, flat)),
            MediaFamily::Multipart => BodyKind::Multipart(self.parts(source, flat)),
            MediaFamily::Xml if is_text || target.is_none() => BodyKind::Text,
            MediaFamily::Xml => {
                let shape = source.schema.map(|schema| xml::shape(self.files, schema));
                BodyKind::Xml(Box::new(shape.unwrap_or_default()))
            }
            MediaFamily::Text => BodyKind::Text,
            // A text format, such as SQL or YAML.
            MediaFamily::Other
                if is_text && !is_octets && !target.is_some_and(|target| is_file(target.node)) =>
            {
                BodyKind::Text
            }
            // JSON with another media type, as in some services.
            MediaFamily::Other if !flat.properties.is_empty() => BodyKind::Json,
            MediaFamily::Other => BodyKind::Bytes,
        }
    }

    /// Adds the members of a body as arguments next to the parameters.
    fn members(
        &mut self,
        source: &BodySource<'d>,
        flat: &FlatSchema<'d>,
        parts: &[FormPart],
        required: bool,
        input: &mut ArgumentSchema,
    ) -> BodyContent {
        let mut named = Vec::new();
        let examples = self.body_examples(source);
        for (name, at) in &flat.properties {
            if self.requests.is_omitted(*at) {
                continue;
            }
            let is_required = flat.required.contains(name);
            let schema = match parts.iter().find(|part| part.name == *name) {
                Some(FormPart { kind: PartKind::File, .. }) => self.file_argument(*at),
                _ => {
                    let required = required && is_required;
                    let mut schema = self.requests.write_property(name, *at, required, &mut input.root);
                    let examples = body_texts::of_member(&examples, name);
                    words::add_examples(&mut schema, examples, self.options.texts.example_bytes);
                    schema
                }
            };
            let argument = match required {
                true => input.add(name, "body", schema, is_required),
                false => input.add_together(name, schema, is_required),
            };
            named.push((argument, (*name).to_owned()));
        }
        let others = flat.keyword("additionalProperties");
        let open = others.is_none_or(|others| *others.node != SpecNode::Bool(false));
        // Members that are required but not described are required as well, with any value.
        let is_described = |name: &str| flat.properties.iter().any(|(known, _)| *known == name);
        for name in flat.required.iter().filter(|name| open && !is_described(name)) {
            let argument = match required {
                true => input.add(name, "body", json!({}), true),
                false => input.add_together(name, json!({}), true),
            };
            named.push((argument, (*name).to_owned()));
        }
        input.others = match others {
            Some(at) if at.node.is_object() => Some(self.requests.write(at, false, &mut input.root)),
            Some(at) => Some(Value::Bool(*at.node != SpecNode::Bool(false))),
            None => None,
        };
        BodyContent::Members { named, accepts_others: open }
    }

    /// Adds the body as one argument.
    fn whole_body(
        &mut self,
        source: &BodySource<'d>,
        kind: &BodyKind,
        required: bool,
        input: &mut ArgumentSchema,
    ) -> String {
        let mut schema = match (kind, source.schema) {
            (BodyKind::Bytes, _) => json!({"type": "string", "contentEncoding": "base64"}),
            (BodyKind::Text, None) => json!({"type": "string"}),
            (_, Some(schema)) => self.requests.write(schema, required, &mut input.root),
            (BodyKind::Form(_) | BodyKind::Multipart(_), None) => json!({"type": "object"}),
            (_, None) => json!({}),
        };
        if let (BodyKind::Multipart(_), Value::Object(keywords)) = (kind, &mut schema)
            && !["$ref", "allOf", "anyOf", "oneOf"].iter().any(|word| keywords.contains_key(*word))
        {
            keywords.insert("type".to_owned(), "object".into());
        }
        self.describe_body(&mut schema, source, kind, input);
        if *kind == BodyKind::Bytes {
            describe_encoding(&mut schema);
        } else {
            let examples = self.body_examples(source);
            words::add_examples(&mut schema, examples, self.options.texts.example_bytes);
        }
        input.add("body", "content", schema, required)
    }
}

/// The declaration of a body.
pub(super) struct BodySource<'d> {
    pub(super) media_type: &'d str,
    pub(super) schema: Option<NodeRef<'d>>,
    pub(super) encoding: Option<NodeRef<'d>>,
    /// The media type in OpenAPI 3.
    pub(super) media: Option<NodeRef<'d>>,
    /// The body, or the parameter in OpenAPI 2.
    pub(super) description: NodeRef<'d>,
}

/// True if properties fully describe an object, so that they can be arguments next to others.
fn is_plain_object(flat: &FlatSchema<'_>) -> bool {
    let is_plain = |(name, at): &(&str, NodeRef<'_>)| match *name {
        "type" => at.node.as_str() == Some("object"),
        "title"
        | "description"
        | "example"
        | "examples"
        | "default"
        | "externalDocs"
        | "xml"
        | "discriminator"
        | "deprecated"
        | "additionalProperties"
        | "$schema"
        | "$id"
        | "$anchor"
        | "$comment"
        | "$defs" => true,
        "nullable" => *at.node == SpecNode::Bool(false),
        name => name.starts_with("x-"),
    };
    !flat.properties.is_empty() && flat.keywords.iter().all(is_plain)
}
