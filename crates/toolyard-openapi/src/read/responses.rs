//! What an operation answers.

use serde_json::json;
use toolyard_core::Json;

use super::input::{LARGEST_OF_RESULT, with_definitions};
use super::media::{Family, concrete, family};
use super::paths::Site;
use super::{Reader, Version};
use crate::document::Node;
use crate::resolve::At;
use crate::response::Promise;
use crate::schema::{Root, flat};

impl<'d> Reader<'d> {
    /// The media types of its success, JSON first, and the schema of its result if there is one.
    pub(super) fn responses(&mut self, site: &Site<'d>) -> (Vec<String>, Option<(Json, Promise)>) {
        let mut accept = Vec::new();
        let mut schemas = Vec::new();
        for at in self.successes(site) {
            for (media_type, schema) in self.contents(site, at) {
                accept.push(concrete(media_type));
                if family(media_type) == Family::Json {
                    schemas.extend(schema);
                }
            }
        }
        accept.sort_by_key(|media_type| family(media_type) != Family::Json);
        accept.dedup();
        // Of several results, none is promised.
        let first = schemas.first().copied();
        let is_one = |at: At<'d>| schemas.iter().all(|other| other.node == at.node);
        (accept, first.filter(|at| is_one(*at)).and_then(|at| self.result_schema(at)))
    }

    /// The responses of success: those of 2xx, or else the default one.
    fn successes(&self, site: &Site<'d>) -> Vec<At<'d>> {
        let responses = site.operation.get("responses");
        let of = |wanted: fn(&str) -> bool| {
            let members = responses.into_iter().flat_map(At::members);
            members
                .filter(|(status, _)| wanted(status))
                .filter_map(|(_, at)| self.files.resolve(at))
                .collect()
        };
        let successes: Vec<At<'d>> = of(|status| status.starts_with('2'));
        if successes.is_empty() { of(|status| status == "default") } else { successes }
    }

    fn contents(&self, site: &Site<'d>, response: At<'d>) -> Vec<(&'d str, Option<At<'d>>)> {
        if self.version != Version::V2 {
            let content = response.get("content").into_iter().flat_map(At::members);
            return content.map(|(media_type, at)| (media_type, at.get("schema"))).collect();
        }
        let produces = site.operation.get("produces").or_else(|| self.files.root().get("produces"));
        let produces: Vec<&str> =
            produces.map_or(&[][..], |at| at.node.items()).iter().filter_map(Node::as_str).collect();
        let schema = response.get("schema");
        match (&*produces, schema) {
            ([], Some(_)) => vec![("application/json", schema)],
            (produces, _) => produces.iter().map(|media_type| (*media_type, schema)).collect(),
        }
    }

    /// The schema of a result. Clients know objects only: anything else is a member of one.
    fn result_schema(&mut self, at: At<'d>) -> Option<(Json, Promise)> {
        let target = self.files.resolve(at)?;
        let shape = flat(self.files, target);
        let kind = shape.keyword("type").map(|at| at.node);
        let is_object = kind.is_none() && !shape.properties.is_empty()
            || kind.is_some_and(|kind| kind.as_str() == Some("object"));
        let mut root = Root::default();
        let (schema, promise) = if is_object {
            let mut schema = self.responses.write_whole(target, &mut root);
            // `null` is no result.
            schema.as_object_mut()?.insert("type".to_owned(), "object".into());
            (schema, Promise::Object)
        } else {
            kind?;
            let schema = self.responses.write(at, true, &mut root);
            let whole = json!({"type": "object", "properties": {"result": schema}, "required": ["result"]});
            (whole, Promise::Result)
        };
        let (schema, _) = with_definitions(schema, &root, &mut self.responses, LARGEST_OF_RESULT);
        (schema.as_bytes().len() <= LARGEST_OF_RESULT).then_some((schema, promise))
    }
}
