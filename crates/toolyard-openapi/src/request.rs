//! Converts the arguments of a call to a request.
//!
//! Each parameter takes its argument, and the body takes the remaining ones. Arguments that belong to neither are
//! ignored, unless the body accepts any member.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Uri};
use toolyard_core::{ErrorCode, Json, Object, ToolError};

use crate::operation::{BodyKind, OpenApiOperation, ParameterLocation};
use crate::wire::body::{self, WrittenBody};
use crate::wire::{media, parameter, path};

impl OpenApiOperation {
    /// Builds the request for these arguments, to the server of this operation or to the URL `base` instead.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArguments`] if an argument is missing or cannot be encoded; [`ErrorCode::Unavailable`] if the server
    /// is unknown.
    pub fn request(&self, arguments: Option<&Json>, base: Option<&str>) -> Result<Request<Bytes>, ToolError> {
        let mut rest = match arguments.map(Json::to_object) {
            Some(Err(error)) => {
                return Err(ToolError::new(
                    ErrorCode::InvalidArguments,
                    format!("Invalid arguments: {error}"),
                ));
            }
            Some(Ok(object)) => object,
            None => Object::new(),
        };
        let base = base.unwrap_or(&self.server);
        let (path, query_of_path) = path::fill(self, &mut rest)?;
        let mut parts = parameter::WrittenParameters::new(query_of_path.as_deref());
        for parameter in
            self.parameters.iter().filter(|parameter| parameter.location != ParameterLocation::Path)
        {
            if let Some(value) = rest.remove(&parameter.argument) {
                parts.add(parameter, &value)?;
            }
        }
        let body = self.body.as_ref().map(|body| body::write(body, &rest)).transpose()?.flatten();
        let (query, argument_headers) = parts.finish()?;
        let headers = self.headers(argument_headers, body.as_ref());
        let mut request = Request::new(body.map(|body| body.bytes).unwrap_or_default());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url(base, &path, &query)?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Returns the headers of the description and of the arguments, which take precedence.
    fn headers(&self, argument_headers: HeaderMap, body: Option<&WrittenBody>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let accept = HeaderValue::try_from(accept(&self.accept));
        headers.insert(header::ACCEPT, accept.unwrap_or(HeaderValue::from_static("*/*")));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("toolyard/", env!("CARGO_PKG_VERSION"))),
        );
        let override_type = argument_headers
            .get(header::CONTENT_TYPE)
            .filter(|override_type| self.accepts_content_type(override_type))
            .cloned();
        headers.extend(argument_headers);
        headers.remove(header::CONTENT_TYPE);
        if let Some(body) = body {
            let declared = HeaderValue::try_from(&body.media_type);
            let otherwise = HeaderValue::from_static("application/octet-stream");
            headers.insert(header::CONTENT_TYPE, override_type.or(declared.ok()).unwrap_or(otherwise));
        }
        headers
    }

    /// True if an argument may set this content type, which must match the encoding of the body.
    fn accepts_content_type(&self, media_type: &HeaderValue) -> bool {
        let media_type = media_type.to_str().unwrap_or_default();
        match self.body.as_ref().map(|body| &body.kind) {
            Some(BodyKind::Json) => media::is_json(media_type),
            Some(BodyKind::Xml(_)) => media::is_xml(media_type),
            Some(BodyKind::Text | BodyKind::Bytes) => media::concrete(media_type).is_some(),
            Some(BodyKind::Form(_) | BodyKind::Multipart(_)) | None => false,
        }
    }
}

/// Returns the media types with decreasing quality, followed by any type: failures may have other types.
fn accept(types: &[String]) -> String {
    let weighted = types.iter().enumerate().map(|(index, one)| match index {
        0 => one.clone(),
        _ => format!("{one};q=0.{}", 9_usize.saturating_sub(index).max(2)),
    });
    let is_open = types.iter().any(|one| media::essence(one) == "*/*");
    let any = match types {
        [] => Some("application/json, */*;q=0.5".to_owned()),
        _ => (!is_open).then(|| "*/*;q=0.1".to_owned()),
    };
    weighted.chain(any).collect::<Vec<_>>().join(", ")
}

fn url(base: &str, path: &str, query: &str) -> Result<Uri, ToolError> {
    let base = base.split('#').next().unwrap_or_default();
    let (base, query_of_base) = base.split_once('?').unwrap_or((base, ""));
    let no_server = || {
        let problem =
            "The server of this tool is unknown: its OpenAPI description has no absolute server URL";
        ToolError::new(ErrorCode::Unavailable, problem).unsent()
    };
    let server: Uri = base.parse().map_err(|error| no_server().caused_by(error))?;
    if server.scheme().is_none() || server.host().is_none_or(str::is_empty) {
        return Err(no_server());
    }
    let mut url = base.trim_end_matches('/').to_owned();
    if !path.is_empty() {
        url.extend(["/", path.trim_start_matches('/')]);
    }
    let queries: Vec<_> = [query_of_base, query].into_iter().filter(|query| !query.is_empty()).collect();
    if !queries.is_empty() {
        url.extend(["?", &queries.join("&")]);
    }
    let invalid_url = "Invalid arguments: the resulting URL is invalid or too long";
    url.parse().map_err(|error| ToolError::new(ErrorCode::InvalidArguments, invalid_url).caused_by(error))
}

#[cfg(test)]
mod tests;
