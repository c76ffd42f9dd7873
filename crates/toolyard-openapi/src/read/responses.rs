//! The responses of an operation.

use serde_json::json;
use toolyard_core::Json;

use super::input::{MAX_RESULT_BYTES, with_definitions};
use super::media::{MediaFamily, concrete, family};
use super::paths::OperationSite;
use super::{DescriptionReader, OpenApiVersion};
use crate::document::SpecNode;
use crate::resolve::NodeRef;
use crate::response::ResultPromise;
use crate::schema::{RootSchema, flatten};

impl<'d> DescriptionReader<'d> {
    /// Returns the media types of successful responses, JSON first, and the schema of the result if there is one.
    pub(super) fn responses(
        &mut self,
        site: &OperationSite<'d>,
    ) -> (Vec<String>, Option<(Json, ResultPromise)>) {
        let mut accept = Vec::new();
        let mut schemas = Vec::new();
        for at in self.successes(site) {
            for (media_type, schema) in self.contents(site, at) {
                accept.push(concrete(media_type));
                if family(media_type) == MediaFamily::Json {
                    schemas.extend(schema);
                }
            }
        }
        accept.sort_by_key(|media_type| family(media_type) != MediaFamily::Json);
        accept.dedup();
        // With several different results, none is promised.
        let first = schemas.first().copied();
        let is_one = |at: NodeRef<'d>| schemas.iter().all(|other| other.node == at.node);
        (accept, first.filter(|at| is_one(*at)).and_then(|at| self.result_schema(at)))
    }

    /// Returns the successful responses: 2xx, or else the default one.
    fn successes(&self, site: &OperationSite<'d>) -> Vec<NodeRef<'d>> {
        let responses = site.operation.get("responses");
        let of = |is_included: fn(&str) -> bool| {
            let members = responses.into_iter().flat_map(NodeRef::members);
            members
                .filter(|(status, _)| is_included(status))
                .filter_map(|(_, at)| self.files.resolve(at))
                .collect()
        };
        let successes: Vec<NodeRef<'d>> = of(|status| status.starts_with('2'));
        if successes.is_empty() { of(|status| status == "default") } else { successes }
    }

    fn contents(
        &self,
        site: &OperationSite<'d>,
        response: NodeRef<'d>,
    ) -> Vec<(&'d str, Option<NodeRef<'d>>)> {
        if self.version != OpenApiVersion::V2 {
            let content = response.get("content").into_iter().flat_map(NodeRef::members);
            return content.map(|(media_type, at)| (media_type, at.get("schema"))).collect();
        }
        let produces = site.operation.get("produces").or_else(|| self.files.root().get("produces"));
        let produces: Vec<&str> =
            produces.map_or(&[][..], |at| at.node.items()).iter().filter_map(SpecNode::as_str).collect();
        let schema = response.get("schema");
        match (&*produces, schema) {
            ([], Some(_)) => vec![("application/json", schema)],
            (produces, _) => produces.iter().map(|media_type| (*media_type, schema)).collect(),
        }
    }

    /// Returns the schema of a result. MCP clients only accept objects: anything else becomes a member of one.
    fn result_schema(&mut self, at: NodeRef<'d>) -> Option<(Json, ResultPromise)> {
        let target = self.files.resolve(at)?;
        let shape = flatten(self.files, target);
        let kind = shape.keyword("type").map(|at| at.node);
        let is_object = kind.is_none() && !shape.properties.is_empty()
            || kind.is_some_and(|kind| kind.as_str() == Some("object"));
        let mut root = RootSchema::default();
        let (schema, promise) = if is_object {
            let mut schema = self.responses.write_whole(target, &mut root);
            // `null` is not a result.
            schema.as_object_mut()?.insert("type".to_owned(), "object".into());
            (schema, ResultPromise::Object)
        } else {
            let kind = kind?;
            let mut kinds = kind.as_str().into_iter().chain(kind.items().iter().filter_map(SpecNode::as_str));
            let is_scalar = kinds.any(|kind| matches!(kind, "string" | "number" | "integer" | "boolean"));
            let promise = if is_scalar { ResultPromise::Scalar } else { ResultPromise::Result };
            let schema = self.responses.write(at, true, &mut root);
            let whole = json!({"type": "object", "properties": {"result": schema}, "required": ["result"]});
            (whole, promise)
        };
        let (schema, _) = with_definitions(schema, &root, &mut self.responses, MAX_RESULT_BYTES);
        (schema.as_bytes().len() <= MAX_RESULT_BYTES).then_some((schema, promise))
    }
}
