//! From a call's arguments to a request.
//!
//! Each parameter takes its argument, and the body what is left. What belongs to nothing goes nowhere, unless the body
//! takes any member.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Uri};
use toolyard_core::{Code, Json, Object, ToolError};

use crate::operation::{BodyKind, Location, Operation};
use crate::wire::body::{self, Written};
use crate::wire::{media, parameter, path};

impl Operation {
    /// The request for these arguments, to the server of this operation, or to `base`: a URL that is put in its place.
    ///
    /// # Errors
    /// [`Code::InvalidArguments`] where an argument is missing, or cannot stand where it belongs;
    /// [`Code::Unavailable`] where it is not known which server it goes to.
    pub fn request(&self, arguments: Option<&Json>, base: Option<&str>) -> Result<Request<Bytes>, ToolError> {
        let mut rest = match arguments.map(Json::to_object) {
            Some(Err(error)) => {
                return Err(ToolError::new(Code::InvalidArguments, format!("Invalid arguments: {error}")));
            }
            Some(Ok(object)) => object,
            None => Object::new(),
        };
        let base = base.unwrap_or(&self.server);
        let (path, query_of_path) = path::fill(self, &mut rest)?;
        let mut written = parameter::Written::new(query_of_path.as_deref());
        for parameter in self.parameters.iter().filter(|parameter| parameter.location != Location::Path) {
            if let Some(value) = rest.remove(&parameter.argument) {
                written.add(parameter, &value)?;
            }
        }
        let body = self.body.as_ref().map(|body| body::write(body, &rest)).transpose()?.flatten();
        let (query, of_arguments) = written.finish()?;
        let headers = self.headers(of_arguments, body.as_ref());
        let mut request = Request::new(body.map(|body| body.bytes).unwrap_or_default());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url(base, &path, &query)?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// What the document says, and what arguments say instead.
    fn headers(&self, of_arguments: HeaderMap, body: Option<&Written>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let accept = HeaderValue::try_from(accept(&self.accept));
        headers.insert(header::ACCEPT, accept.unwrap_or(HeaderValue::from_static("*/*")));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("toolyard/", env!("CARGO_PKG_VERSION"))),
        );
        let said = of_arguments.get(header::CONTENT_TYPE).filter(|said| self.may_be_called(said)).cloned();
        headers.extend(of_arguments);
        headers.remove(header::CONTENT_TYPE);
        if let Some(body) = body {
            let written = HeaderValue::try_from(&body.media_type);
            let otherwise = HeaderValue::from_static("application/octet-stream");
            headers.insert(header::CONTENT_TYPE, said.or(written.ok()).unwrap_or(otherwise));
        }
        headers
    }

    /// Whether an argument may say that the body is of this type: what is written is still what it is called then.
    fn may_be_called(&self, said: &HeaderValue) -> bool {
        let said = said.to_str().unwrap_or_default();
        match self.body.as_ref().map(|body| &body.kind) {
            Some(BodyKind::Json) => media::is_json(said),
            Some(BodyKind::Xml(_)) => media::is_xml(said),
            Some(BodyKind::Text | BodyKind::Bytes) => media::concrete(said).is_some(),
            Some(BodyKind::Form(_) | BodyKind::Multipart(_)) | None => false,
        }
    }
}

/// The types, each a little less than the one before it, and anything rather than nothing: a failure may be of any.
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
        let problem = "It is not known which server this tool is at: its document names none by a whole URL";
        ToolError::new(Code::Unavailable, problem).unsent()
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
    let no_url = "Invalid arguments: they make no URL, or one that is too long";
    url.parse().map_err(|error| ToolError::new(Code::InvalidArguments, no_url).caused_by(error))
}

#[cfg(test)]
mod tests;
