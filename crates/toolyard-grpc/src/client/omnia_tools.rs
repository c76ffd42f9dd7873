//! Tools of servers that speak the Omnia tool protocol.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::time::Instant;
use toolyard_backends::delivery::reserve_copies;
use toolyard_backends::health::ServiceHealth;
use toolyard_backends::http::response::ResponseConversion;
use toolyard_core::output_schema::OutputForm;
use toolyard_core::{Call, CallOutput, Json, LeftOutItem, Object, Tool, ToolError};
use toolyard_net::budget::ByteBudget;

use super::delivery::GrpcDelivery;
use super::status::RequestFault;
use crate::descriptor::MethodFilter;
use crate::omnia::{
    self, EXECUTE_PATH, LIST_TOOLS_PATH, ListToolsRequest, ListToolsResponse, ToolInfo, ToolRequest,
    ToolResponse,
};

/// Maximum number of alternatives within each other that are followed.
const MAX_NESTED: usize = 8;

/// The tools of a server, and those that cannot be published.
#[derive(Debug, Default)]
pub(super) struct ListedTools {
    pub(super) tools: Vec<Tool>,
    pub(super) left_out: Vec<LeftOutItem>,
}

/// Lists the tools of a server.
///
/// # Errors
/// If the server does not answer.
pub(super) async fn list(
    delivery: &GrpcDelivery,
    headers: &HeaderMap,
    until: Option<Instant>,
) -> Result<ListToolsResponse, RequestFault> {
    let (listed, _reserved) = delivery.typed(LIST_TOOLS_PATH, ListToolsRequest {}, headers, until).await?;
    Ok(listed)
}

/// Converts the tools of a list that the filter selects. Their names stand for those of methods.
pub(super) fn listed(response: &ListToolsResponse, filter: &MethodFilter) -> ListedTools {
    let mut listed = ListedTools::default();
    if !filter.allows_service(omnia::SERVICE) {
        return listed;
    }
    let is_selected = |info: &&ToolInfo| filter.allows_method(omnia::SERVICE, &info.name, &info.name);
    for info in response.tools.iter().filter(is_selected) {
        match tool(info) {
            Ok(tool) => listed.tools.push(tool),
            Err(reason) => {
                let (name, reason) = (info.name.as_str().into(), reason.into());
                listed.left_out.push(LeftOutItem { name, reason });
            }
        }
    }
    listed
}

fn tool(info: &ToolInfo) -> Result<Tool, &'static str> {
    if info.name.is_empty() {
        return Err("the tool has no name");
    }
    let schema = match info.input_schema.trim() {
        "" => Object::new().with("type", Json::string("object")).to_json(),
        text => Json::parse(text.to_owned()).map_err(|_| "the input schema is not JSON")?,
    };
    if !schema.is_object() {
        return Err("the input schema is not an object");
    }
    let schema =
        object_schema(schema).ok_or("the input schema does not allow objects, which arguments are")?;
    let rest = Object::new().with("description", Json::string(&info.description)).with("inputSchema", schema);
    Ok(Tool::named(&info.name, rest))
}

/// Returns a schema with `type: object`, which MCP requires of arguments; `None` if it allows no objects.
fn object_schema(schema: Json) -> Option<Json> {
    if !allows_objects(&schema.to_value(), MAX_NESTED) {
        return None;
    }
    let mut members = schema.to_object().ok()?;
    if members.get_str("type").as_deref() == Some("object") {
        return Some(schema);
    }
    members.set("type", Json::string("object"));
    Some(members.to_json())
}

/// False if a schema says by its type, its values, or those of its alternatives that it allows no objects. Alternatives
/// are followed `depth` times.
fn allows_objects(schema: &Value, depth: usize) -> bool {
    let list = |name: &str| schema[name].as_array().map(Vec::as_slice);
    let by_type = match &schema["type"] {
        Value::String(name) => name == "object",
        Value::Array(names) => names.iter().any(|name| name == "object"),
        _ => true,
    };
    let by_values = list("enum").is_none_or(|values| values.iter().any(Value::is_object))
        && schema.get("const").is_none_or(Value::is_object);
    let any = |schemas: &[Value]| schemas.iter().any(|it| allows_objects(it, depth.saturating_sub(1)));
    let all = |schemas: &[Value]| schemas.iter().all(|it| allows_objects(it, depth.saturating_sub(1)));
    let by_alternatives = depth == 0
        || (list("anyOf").is_none_or(any) && list("oneOf").is_none_or(any) && list("allOf").is_none_or(all));
    *schema != Value::Bool(false) && by_type && by_values && by_alternatives
}

/// Runs a tool.
///
/// # Errors
/// If the server does not answer, or with something else than JSON.
pub(super) async fn execute(
    call: &Call,
    form: OutputForm,
    delivery: &Arc<GrpcDelivery>,
    health: &ServiceHealth,
    budget: &ByteBudget,
) -> Result<CallOutput, ToolError> {
    let headers = delivery.headers(Some(call)).await?;
    let request = ToolRequest {
        tool_name: call.target.name().to_string(),
        arguments_json: call.arguments().map_or("{}", Json::as_text).to_owned(),
        metadata: HashMap::new(),
    };
    let attempt = |until| {
        let (request, headers) = (request.clone(), headers.clone());
        async move { delivery.typed(EXECUTE_PATH, request, &headers, until).await }
    };
    let (response, reserved): (ToolResponse, _) = delivery.run(call.time_limit(), health, attempt).await?;
    if response.is_error {
        return Ok(CallOutput::failure(&format!("tool error: {}", response.error_message)));
    }
    let text = if response.result_json.trim().is_empty() { "null".to_owned() } else { response.result_json };
    let reading = ResponseConversion { form, ..ResponseConversion::default() };
    let mut output = reading.output(StatusCode::OK, None, reserved.hold(text.into()))?;
    reserve_copies(budget, &mut output, &["content", "structuredContent"]).await?;
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, schema: &str, expected: Result<&str, &str>) {
        let info = ToolInfo {
            name: name.to_owned(),
            description: "Adds".to_owned(),
            input_schema: schema.to_owned(),
        };
        let listed = listed(&ListToolsResponse { tools: vec![info] }, &MethodFilter::default());
        let tools = listed.tools.iter().map(|tool| tool.definition.to_json());
        let left_out = listed.left_out.iter().map(|item| item.reason.to_string());
        let found: Vec<Result<String, String>> =
            tools.map(|tool| Ok(tool.as_text().to_owned())).chain(left_out.map(Err)).collect();
        assert_eq!(found, [expected.map(str::to_owned).map_err(str::to_owned)]);
    }

    #[test]
    fn listed_tools_need_a_name_and_a_schema() {
        let any = r#"{"name":"add","description":"Adds","inputSchema":{"type":"object"}}"#;
        check("add", "", Ok(any));
        check("add", r#"{"type":"object"}"#, Ok(any));
        check("add", "{}", Ok(any));
        check("add", r#"{"type":["object","null"]}"#, Ok(any));
        let listed =
            |schema: &str| format!(r#"{{"name":"add","description":"Adds","inputSchema":{schema}}}"#);
        let choice = r#""anyOf":[{"required":["a"]},{"type":"string"}]"#;
        check("add", &format!("{{{choice}}}"), Ok(&listed(&format!(r#"{{{choice},"type":"object"}}"#))));
        let other = Err("the input schema does not allow objects, which arguments are");
        check("add", r#"{"type":"array"}"#, other);
        check("add", r#"{"type":["array","null"]}"#, other);
        check("add", r#"{"enum":[1,"a"]}"#, other);
        check("add", r#"{"const":[]}"#, other);
        check("add", r#"{"oneOf":[{"type":"string"},{"type":"null"}]}"#, other);
        check("add", r#"{"allOf":[{},{"type":"string"}]}"#, other);
        check("", "{}", Err("the tool has no name"));
        check("add", "{", Err("the input schema is not JSON"));
        check("add", "true", Err("the input schema is not an object"));
    }
}
