//! The parameters of an operation.

use serde_json::{Value, json};

use super::input::Input;
use super::paths::Site;
use super::{Place, Reader, Version, words};
use crate::document::Node;
use crate::operation::{Form, Location, Parameter, Style, Styled};
use crate::resolve::At;

/// Headers that requests have anyway, from what else is known (OpenAPI 3.1, section 4.8.12.2).
const RESERVED: [&str; 3] = ["accept", "content-type", "authorization"];

/// A parameter as it is declared, and where.
pub(super) struct Declared<'d> {
    pub(super) at: At<'d>,
    pub(super) name: &'d str,
    pub(super) location: &'d str,
    pub(super) place: Place,
}

impl<'d> Reader<'d> {
    /// All parameters of an operation: those of its path, and its own, which go before them.
    pub(super) fn declared(&mut self, site: &Site<'d>) -> Vec<Declared<'d>> {
        let mut all: Vec<Declared<'d>> = Vec::new();
        for holder in [site.path_item, site.operation] {
            let from = all.len();
            for (index, at) in holder.list("parameters").enumerate() {
                let place = site.place.at("parameters").at(index);
                let Some(at) = self.resolve(at, &place, "the parameter is left out") else { continue };
                let (Some(name), Some(location)) = (at.node.text("name"), at.node.text("in")) else {
                    self.fault(&place, "a parameter has to have `name` and `in`: it is left out");
                    continue;
                };
                let is_same = |other: &Declared<'_>| other.name == name && other.location == location;
                let Some(other) = all.iter().position(is_same) else {
                    all.push(Declared { at, name, location, place });
                    continue;
                };
                if other >= from {
                    self.fault(&place, format!("`{name}` is declared twice: the last one counts"));
                }
                all[other] = Declared { at, name, location, place };
            }
        }
        all
    }

    /// Those that are no part of the body, as arguments.
    pub(super) fn parameters(
        &mut self,
        site: &Site<'d>,
        declared: &[Declared<'d>],
        input: &mut Input,
    ) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for parameter in declared {
            let Some(location) = self.location(site, parameter) else { continue };
            let required = location == Location::Path || parameter.at.node.is("required");
            let schema = self.parameter_schema(parameter.at, required, input);
            let argument = input.add(parameter.name, parameter.location, schema, required);
            let form = self.form(parameter.at, location);
            let name = parameter.name.to_owned();
            parameters.push(Parameter { argument, name, location, form, required });
        }
        for name in placeholders(site.path) {
            let is_declared =
                |parameter: &Parameter| parameter.location == Location::Path && parameter.name == name;
            if parameters.iter().any(is_declared) {
                continue;
            }
            self.fault(
                &site.place,
                format!("the path has `{{{name}}}`, which is not declared: it is taken for a text"),
            );
            let argument = input.add(name, "path", json!({"type": "string"}), true);
            let form = default_form(Location::Path);
            parameters.push(Parameter {
                argument,
                name: name.to_owned(),
                location: Location::Path,
                form,
                required: true,
            });
        }
        parameters
    }

    /// Where a parameter goes; `None` where it is none, or goes nowhere.
    fn location(&mut self, site: &Site<'d>, parameter: &Declared<'d>) -> Option<Location> {
        match parameter.location {
            "path" if placeholders(site.path).any(|name| name == parameter.name) => Some(Location::Path),
            "path" => {
                let problem = format!("the path has no `{{{}}}`: the parameter is left out", parameter.name);
                self.fault(&parameter.place, problem);
                None
            }
            "query" => Some(Location::Query),
            "querystring" => Some(Location::QueryString),
            "header" if RESERVED.contains(&&*parameter.name.to_ascii_lowercase()) => None,
            "header" => Some(Location::Header),
            "cookie" => Some(Location::Cookie),
            "body" | "formData" if self.version == Version::V2 => None,
            other => {
                let problem = format!("`in` cannot be `{other}`: the parameter is left out");
                self.fault(&parameter.place, problem);
                None
            }
        }
    }

    /// What the argument of a parameter has to be.
    pub(super) fn parameter_schema(&mut self, at: At<'d>, required: bool, input: &mut Input) -> Value {
        let content = at.get("content").and_then(|content| content.members().next());
        let schema = match (self.version, content) {
            (Version::V2, _) => Some(at),
            (_, Some((_, media))) => media.get("schema"),
            (_, None) => at.get("schema"),
        };
        let mut value = match schema {
            Some(schema) => self.requests.write(schema, required, &mut input.root),
            None => json!({}),
        };
        describe(&mut value, at.node);
        value
    }

    fn form(&self, at: At<'d>, location: Location) -> Form {
        if self.version == Version::V2 {
            return Form::Styled(collection_format(at.node, location));
        }
        if let Some((media_type, _)) = at.get("content").and_then(|content| content.members().next()) {
            return Form::Content(media_type.to_owned());
        }
        Form::Styled(styled(at.node, location))
    }
}

/// What is said of a parameter goes before what is said of its type.
pub(super) fn describe(schema: &mut Value, parameter: &Node<'_>) {
    let Some(text) = parameter.text("description").filter(|text| !text.trim().is_empty()) else { return };
    match schema {
        Value::Object(members) => {
            members.insert("description".to_owned(), words::of_argument(text).into());
        }
        // `true`: anything.
        schema => *schema = json!({"description": words::of_argument(text)}),
    }
}

/// The style of a parameter, of an encoding, or of what has neither.
pub(super) fn styled(node: &Node<'_>, location: Location) -> Styled {
    let Form::Styled(default) = default_form(location) else { return FORM };
    let style = node.text("style").and_then(style).unwrap_or(default.style);
    let explode = match node.get("explode") {
        Some(Node::Bool(explode)) => *explode,
        _ => matches!(style, Style::Form | Style::Cookie | Style::DeepObject),
    };
    Styled { style, explode, allow_reserved: node.is("allowReserved") }
}

/// What a query and a form have unless something is said.
pub(super) const FORM: Styled = Styled { style: Style::Form, explode: true, allow_reserved: false };

const SIMPLE: Styled = Styled { style: Style::Simple, explode: false, allow_reserved: false };

fn default_form(location: Location) -> Form {
    match location {
        Location::Path | Location::Header => Form::Styled(SIMPLE),
        Location::Query | Location::Cookie => Form::Styled(FORM),
        Location::QueryString => Form::Content("application/x-www-form-urlencoded".to_owned()),
    }
}

fn style(name: &str) -> Option<Style> {
    Some(match name {
        "simple" => Style::Simple,
        "label" => Style::Label,
        "matrix" => Style::Matrix,
        "form" => Style::Form,
        "spaceDelimited" => Style::SpaceDelimited,
        "pipeDelimited" => Style::PipeDelimited,
        "deepObject" => Style::DeepObject,
        "cookie" => Style::Cookie,
        _ => return None,
    })
}

/// `collectionFormat` of OpenAPI 2.
pub(super) fn collection_format(node: &Node<'_>, location: Location) -> Styled {
    let plain = match location {
        Location::Path | Location::Header => SIMPLE,
        _ => Styled { explode: false, ..FORM },
    };
    match node.text("collectionFormat") {
        Some("multi") => Styled { explode: true, ..plain },
        Some("ssv") => Styled { style: Style::SpaceDelimited, ..plain },
        Some("tsv") => Styled { style: Style::TabDelimited, ..plain },
        Some("pipes") => Styled { style: Style::PipeDelimited, ..plain },
        _ => plain,
    }
}

/// The names in braces, as far as these are the specification's: some documents write templates of RFC 6570, with queries
/// in them.
fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    names
        .filter(|name| !name.starts_with(['?', '&', '#']))
        .map(|name| name.trim_start_matches('+').trim_end_matches('*'))
}
