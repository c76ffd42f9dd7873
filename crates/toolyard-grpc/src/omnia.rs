//! The messages of the Omnia tool protocol, `omnia.tools.v1`, and the paths of its methods.
//!
//! They are written by hand, so that a build needs no `protoc`; a test compares them with `proto/omnia/tools/v1/tools.proto`.

mod descriptor;

use std::collections::HashMap;

pub use descriptor::file_descriptor_set;

/// Full name of the service.
pub const SERVICE: &str = "omnia.tools.v1.ToolService";

/// Path of the method that runs a tool: [`ToolRequest`] to [`ToolResponse`].
pub const EXECUTE_PATH: &str = "/omnia.tools.v1.ToolService/Execute";

/// Path of the method that lists tools: [`ListToolsRequest`] to [`ListToolsResponse`].
pub const LIST_TOOLS_PATH: &str = "/omnia.tools.v1.ToolService/ListTools";

/// A call of a tool.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolRequest {
    /// Name of the tool, as [`ToolInfo::name`] gives it.
    #[prost(string, tag = "1")]
    pub tool_name: String,
    /// The arguments: a JSON object. Empty and `null` stand for no arguments.
    #[prost(string, tag = "2")]
    pub arguments_json: String,
    /// Facts about the call that are not arguments.
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

/// The result of a call.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolResponse {
    /// The result: a JSON value. Empty stands for `null`.
    #[prost(string, tag = "1")]
    pub result_json: String,
    /// True if the tool failed.
    #[prost(bool, tag = "2")]
    pub is_error: bool,
    /// The reason, if the tool failed.
    #[prost(string, tag = "3")]
    pub error_message: String,
}

/// A request for the tools that the caller may run.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ListToolsRequest {}

/// The tools that the caller may run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListToolsResponse {
    /// The tools, in the order of the server.
    #[prost(message, repeated, tag = "1")]
    pub tools: Vec<ToolInfo>,
}

/// A tool.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolInfo {
    /// Name by which the tool is run.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Purpose of the tool, for a model.
    #[prost(string, tag = "2")]
    pub description: String,
    /// JSON Schema of the arguments, as text.
    #[prost(string, tag = "3")]
    pub input_schema: String,
}

#[cfg(test)]
mod tests;
