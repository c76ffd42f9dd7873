//! The body of an operation.

use serde_json::{Value, json};

use super::input::Input;
use super::media::{self, Family};
use super::parameters::{Declared, collection_format, describe, styled};
use super::paths::Site;
use super::{Reader, Version, words, xml};
use crate::document::Node;
use crate::operation::{Body, BodyKind, Content, Location, Part, PartKind};
use crate::resolve::At;
use crate::schema::{Flat, flat};

/// How deep the items of arrays, and alternatives, are looked into for files.
const DEEPEST_PART: usize = 8;

/// The operation cannot be called: a fault says why.
pub(super) struct Unusable;

impl<'d> Reader<'d> {
    /// The body of OpenAPI 3.
    pub(super) fn body(&mut self, site: &Site<'d>, input: &mut Input) -> Result<Option<Body>, Unusable> {
        let Some(request) = site.operation.get("requestBody") else { return Ok(None) };
        let place = site.place.at("requestBody");
        let Some(request) = self.resolve(request, &place, "the operation is left out") else {
            return Err(Unusable);
        };
        let content = request.get("content").into_iter().flat_map(At::members);
        let content: Vec<_> =
            content.map(|(media_type, at)| (media_type, self.files.resolve(at).unwrap_or(at))).collect();
        let has_files = |at: &At<'d>| at.get("schema").is_some_and(|schema| self.has_files(schema));
        let multipart =
            content.iter().find(|(name, at)| media::family(name) == Family::Multipart && has_files(at));
        let json_first = media::preferred(content.iter().map(|(name, at)| (*name, *at)));
        // A form with files cannot be sent in another way.
        let chosen = match (json_first, multipart) {
            (Some((name, _)), Some((multipart, at))) if media::family(name) == Family::Form => {
                Some((*multipart, *at))
            }
            (chosen, _) => chosen,
        };
        let Some((media_type, at)) = chosen else { return Ok(None) };
        let wanted = Wanted {
            media_type,
            schema: at.get("schema"),
            encoding: at.get("encoding"),
            words: request.node,
        };
        Ok(Some(self.body_of(&wanted, request.node.is("required"), input)))
    }

    /// The body of OpenAPI 2, which is a parameter, or several.
    pub(super) fn body_of_version_2(
        &mut self,
        site: &Site<'d>,
        declared: &[Declared<'d>],
        input: &mut Input,
    ) -> Result<Option<Body>, Unusable> {
        let of =
            |location: &str| declared.iter().filter(|parameter| parameter.location == location).collect();
        let (bodies, fields): (Vec<&Declared<'d>>, Vec<&Declared<'d>>) = (of("body"), of("formData"));
        let consumes = site.operation.get("consumes").or_else(|| self.files.root().get("consumes"));
        let consumes: Vec<&str> =
            consumes.map_or(&[][..], |at| at.node.items()).iter().filter_map(Node::as_str).collect();
        match (&*bodies, &*fields) {
            ([], []) => Ok(None),
            ([body], []) => {
                let media_type = media::preferred(consumes.iter().map(|name| (*name, ())))
                    .map_or("application/json", |(name, ())| name);
                let wanted =
                    Wanted { media_type, schema: body.at.get("schema"), encoding: None, words: body.at.node };
                Ok(Some(self.body_of(&wanted, body.at.node.is("required"), input)))
            }
            ([], fields) => Ok(Some(self.form_of_version_2(fields, &consumes, input))),
            ([_, other, ..], _) => {
                self.fault(&other.place, "an operation has one body at most: it is left out");
                Err(Unusable)
            }
            ([body], _) => {
                self.fault(
                    &body.place,
                    "there are fields of a form beside the body: the operation is left out",
                );
                Err(Unusable)
            }
        }
    }

    fn form_of_version_2(&mut self, fields: &[&Declared<'d>], consumes: &[&str], input: &mut Input) -> Body {
        let mut parts = Vec::new();
        let mut named = Vec::new();
        let mut is_required = false;
        for field in fields {
            let node = field.at.node;
            let kind = if node.text("type") == Some("file") { PartKind::File } else { PartKind::Text };
            let schema = match kind {
                PartKind::File => file(node),
                _ => self.parameter_schema(field.at, node.is("required"), input),
            };
            is_required |= node.is("required");
            named.push((input.add(field.name, "form", schema, node.is("required")), field.name.to_owned()));
            let styled =
                (node.text("type") == Some("array")).then(|| collection_format(node, Location::Query));
            parts.push(Part { name: field.name.to_owned(), kind, media_type: None, styled });
        }
        let has_files = parts.iter().any(|part| part.kind == PartKind::File);
        let is = |family| move |name: &&&str| media::family(name) == family;
        let multipart = consumes.iter().find(is(Family::Multipart)).copied();
        let form = consumes.iter().find(is(Family::Form)).copied();
        let (media_type, kind) = match (form, multipart) {
            (Some(form), _) if !has_files => (form, BodyKind::Form(parts)),
            (_, Some(multipart)) => (multipart, BodyKind::Multipart(parts)),
            _ if has_files => ("multipart/form-data", BodyKind::Multipart(parts)),
            _ => ("application/x-www-form-urlencoded", BodyKind::Form(parts)),
        };
        input.others = Some(false.into());
        Body {
            media_type: media::concrete(media_type),
            kind,
            content: Content::Members { named, open: false },
            required: is_required,
        }
    }

    fn body_of(&mut self, wanted: &Wanted<'d>, required: bool, input: &mut Input) -> Body {
        let target = wanted.schema.and_then(|schema| self.files.resolve(schema));
        // What stands beside a reference counts, since OpenAPI 3.1: both together are no plain object.
        let is_mixed = self.version == Version::V31
            && wanted.schema.is_some_and(|schema| {
                schema.reference().is_some() && schema.node.get("properties").is_some()
            });
        let flat = target.filter(|_| !is_mixed).map(|target| flat(self.files, target)).unwrap_or_default();
        let kind = self.kind(wanted, target, &flat);
        let parts: &[Part] = match &kind {
            BodyKind::Form(parts) | BodyKind::Multipart(parts) => parts,
            _ => &[],
        };
        let has_members = !matches!(kind, BodyKind::Text | BodyKind::Bytes) && is_plain_object(&flat);
        let content = match has_members {
            true => self.members(&flat, parts, required, input),
            false => {
                input.others = Some(false.into());
                Content::Argument(self.whole(wanted, &kind, required, input))
            }
        };
        Body { media_type: media::concrete(wanted.media_type), kind, content, required }
    }

    fn kind(&self, wanted: &Wanted<'d>, target: Option<At<'d>>, flat: &Flat<'d>) -> BodyKind {
        let is_text = target.is_some_and(|target| target.node.text("type") == Some("string"));
        let is_octets = wanted.media_type.starts_with("application/octet-stream");
        match media::family(wanted.media_type) {
            Family::Json => BodyKind::Json,
            Family::Form => BodyKind::Form(self.parts(wanted, flat)),
            Family::Multipart => BodyKind::Multipart(self.parts(wanted, flat)),
            Family::Xml if is_text || target.is_none() => BodyKind::Text,
            Family::Xml => {
                let shape = wanted.schema.map(|schema| xml::shape(self.files, schema));
                BodyKind::Xml(Box::new(shape.unwrap_or_default()))
            }
            Family::Text => BodyKind::Text,
            // A language, such as SQL or YAML.
            Family::Other if is_text && !is_octets && !target.is_some_and(|target| is_file(target.node)) => {
                BodyKind::Text
            }
            // JSON by another name, as some services have it.
            Family::Other if !flat.properties.is_empty() => BodyKind::Json,
            Family::Other => BodyKind::Bytes,
        }
    }

    /// The members of a body as arguments beside the parameters.
    fn members(&mut self, flat: &Flat<'d>, parts: &[Part], required: bool, input: &mut Input) -> Content {
        let mut named = Vec::new();
        for (name, at) in &flat.properties {
            if self.requests.leaves_out(*at) {
                continue;
            }
            let is_required = flat.required.contains(name);
            let schema = match parts.iter().find(|part| part.name == *name) {
                Some(Part { kind: PartKind::File, .. }) => self.file(*at),
                _ => self.requests.write_property(name, *at, required && is_required, &mut input.root),
            };
            let argument = match required {
                true => input.add(name, "body", schema, is_required),
                false => input.add_together(name, schema, is_required),
            };
            named.push((argument, (*name).to_owned()));
        }
        let others = flat.keyword("additionalProperties");
        let open = others.is_none_or(|others| *others.node != Node::Bool(false));
        // What it needs and does not describe is needed all the same, and may be anything.
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
            Some(at) => Some(Value::Bool(*at.node != Node::Bool(false))),
            None => None,
        };
        Content::Members { named, open }
    }

    /// The body as one argument.
    fn whole(&mut self, wanted: &Wanted<'d>, kind: &BodyKind, required: bool, input: &mut Input) -> String {
        let mut schema = match (kind, wanted.schema) {
            (BodyKind::Bytes, _) => json!({"type": "string", "contentEncoding": "base64"}),
            (BodyKind::Text, None) => json!({"type": "string"}),
            (_, Some(schema)) => self.requests.write(schema, required, &mut input.root),
            (_, None) => json!({}),
        };
        if schema.get("description").is_none() {
            describe(&mut schema, wanted.words);
        }
        if *kind == BodyKind::Bytes {
            encoded(&mut schema);
        }
        input.add("body", "content", schema, required)
    }

    fn parts(&self, wanted: &Wanted<'d>, flat: &Flat<'d>) -> Vec<Part> {
        let part = |(name, at): &(&'d str, At<'d>)| {
            let encoding = wanted.encoding.and_then(|encoding| encoding.get(name)).map(|at| at.node);
            let media_type = encoding.and_then(|encoding| encoding.text("contentType"));
            let media_type = media_type.map(|types| types.split(',').next().unwrap_or_default().trim());
            let says_style = |node: &&Node<'_>| {
                ["style", "explode", "allowReserved"].iter().any(|word| node.get(word).is_some())
            };
            Part {
                name: (*name).to_owned(),
                kind: self.part_kind(*at, media_type),
                media_type: media_type.filter(|media_type| !media_type.contains('*')).map(str::to_owned),
                styled: encoding.filter(says_style).map(|encoding| styled(encoding, Location::Query)),
            }
        };
        flat.properties.iter().map(part).collect()
    }

    fn part_kind(&self, at: At<'d>, media_type: Option<&str>) -> PartKind {
        self.part_kind_within(at, media_type, DEEPEST_PART)
    }

    fn part_kind_within(&self, at: At<'d>, media_type: Option<&str>, depth: usize) -> PartKind {
        let Some(at) = self.files.resolve(at).filter(|_| depth > 0) else { return PartKind::Text };
        let flat = flat(self.files, at);
        let of_type = |kind: &str| flat.keyword("type").is_some_and(|at| at.node.as_str() == Some(kind));
        if is_file(at.node) {
            return PartKind::File;
        }
        if let Some(items) = flat.keyword("items").filter(|_| of_type("array")) {
            return self.part_kind_within(items, media_type, depth - 1);
        }
        // A file or nothing, as Python's frameworks write it.
        let mut branches = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|name| at.list(name));
        if branches.any(|branch| self.part_kind_within(branch, media_type, depth - 1) == PartKind::File) {
            return PartKind::File;
        }
        let is_bytes = media_type.is_some_and(|media_type| media::family(media_type) == Family::Other);
        if is_bytes && (of_type("string") || flat.keyword("type").is_none()) {
            return PartKind::File;
        }
        let is_json = media_type.is_some_and(|media_type| media::family(media_type) == Family::Json);
        let is_nested = of_type("object") || !flat.properties.is_empty();
        if is_json || is_nested { PartKind::Json } else { PartKind::Text }
    }

    /// Whether a form has a file in it.
    fn has_files(&self, schema: At<'d>) -> bool {
        let Some(target) = self.files.resolve(schema) else { return false };
        flat(self.files, target).properties.iter().any(|(_, at)| self.part_kind(*at, None) == PartKind::File)
    }

    /// A file as an argument, or several.
    fn file(&self, at: At<'d>) -> Value {
        let Some(at) = self.files.resolve(at) else { return json!({}) };
        match at.node.text("type") == Some("array") {
            false => file(at.node),
            true => {
                let mut schema = json!({"type": "array", "items": file(&Node::Null)});
                describe(&mut schema, at.node);
                schema
            }
        }
    }
}

/// What is known of a body.
struct Wanted<'d> {
    media_type: &'d str,
    schema: Option<At<'d>>,
    encoding: Option<At<'d>>,
    /// Where its description stands.
    words: &'d Node<'d>,
}

/// Whether a schema is that of bytes.
fn is_file(node: &Node<'_>) -> bool {
    let is_bytes = |text: &str| matches!(text, "binary" | "file" | "base64");
    node.text("type") == Some("file")
        || node.text("format").is_some_and(is_bytes)
        || (node.get("contentMediaType").is_some()
            && node.get("contentEncoding").is_none()
            && node.get("properties").is_none())
}

/// Bytes as an argument.
fn file(node: &Node<'_>) -> Value {
    let mut schema = json!({"type": "string", "contentEncoding": "base64"});
    describe(&mut schema, node);
    encoded(&mut schema);
    schema
}

/// Says how bytes are written: models do not look at `contentEncoding`.
fn encoded(schema: &mut Value) {
    let said = schema["description"].as_str().unwrap_or_default();
    let text = if said.is_empty() {
        "In base64.".to_owned()
    } else {
        format!("{} (In base64.)", words::of_argument(said))
    };
    schema["description"] = text.into();
}

/// Whether an object is told by its properties alone, so that these can stand beside other arguments.
fn is_plain_object(flat: &Flat<'_>) -> bool {
    let is_plain = |(name, at): &(&str, At<'_>)| match *name {
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
        "nullable" => *at.node == Node::Bool(false),
        name => name.starts_with("x-"),
    };
    !flat.properties.is_empty() && flat.keywords.iter().all(is_plain)
}
