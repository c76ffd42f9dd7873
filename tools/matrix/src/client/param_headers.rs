//! Parameter headers: headers that repeat arguments of calls (2026-07-28, basic/transports/streamable-http, custom
//! headers from tool parameters).

use std::collections::HashMap;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// The parameter headers of each tool that was listed.
#[derive(Default)]
pub(super) struct ParamHeaders(HashMap<String, Vec<ParamHeader>>);

/// An argument and its header.
struct ParamHeader {
    path: Vec<String>,
    header: HeaderName,
}

impl ParamHeaders {
    /// Reads a page of the list of tools.
    pub(super) fn learn(&mut self, page: &Value) -> anyhow::Result<()> {
        for tool in page["tools"].as_array().into_iter().flatten() {
            let mut params = Vec::new();
            collect(&tool["inputSchema"], &[], &mut params)?;
            self.0.insert(tool["name"].as_str().unwrap_or_default().to_owned(), params);
        }
        Ok(())
    }

    /// The headers of a call with these parameters.
    pub(super) fn headers(&self, params: &Value) -> anyhow::Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        let headers_of_tool = params["name"].as_str().and_then(|name| self.0.get(name));
        for ParamHeader { path, header } in headers_of_tool.into_iter().flatten() {
            let value = path.iter().try_fold(&params["arguments"], |value, name| value.get(name));
            match value {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => drop(headers.insert(header, encode(text)?)),
                Some(plain) => drop(headers.insert(header, encode(&plain.to_string())?)),
            }
        }
        Ok(headers)
    }
}

fn collect(schema: &Value, path: &[String], params: &mut Vec<ParamHeader>) -> anyhow::Result<()> {
    if let Some(name) = schema["x-mcp-header"].as_str() {
        let header = format!("mcp-param-{name}").parse().with_context(|| format!("{name:?}"))?;
        params.push(ParamHeader { path: path.to_vec(), header });
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        collect(below, &[path, std::slice::from_ref(name)].concat(), params)?;
    }
    Ok(())
}

fn encode(text: &str) -> anyhow::Result<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    Ok(match is_plain && !text.is_empty() && !text.starts_with("=?") {
        true => text.parse()?,
        false => format!("=?base64?{}?=", STANDARD.encode(text)).parse()?,
    })
}
