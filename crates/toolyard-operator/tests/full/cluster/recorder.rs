//! A client that records its requests in the terms of roles.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tower_service::Service;

/// Requests by group, resource and verb, such as `apps/deployments patch`, and those that were forbidden.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordedRequests {
    used: Arc<Mutex<BTreeSet<String>>>,
    forbidden: Arc<Mutex<Vec<String>>>,
}

impl RecordedRequests {
    /// Wraps a client.
    pub(crate) fn client(&self, client: Client) -> Client {
        Client::new(RecordedClient { client, requests: self.clone() }, "default")
    }

    pub(crate) fn used(&self) -> BTreeSet<String> {
        self.used.lock().unwrap().clone()
    }

    pub(crate) fn forbidden(&self) -> Vec<String> {
        self.forbidden.lock().unwrap().clone()
    }
}

struct RecordedClient {
    client: Client,
    requests: RecordedRequests,
}

impl Service<Request<Body>> for RecordedClient {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, requests) = (self.client.clone(), self.requests.clone());
        let (method, uri) = (request.method().clone(), request.uri().to_string());
        let access = access(&method, &uri);
        Box::pin(async move {
            let response = client.send(request).await?;
            let Some((resource, verb)) = access else { return Ok(response) };
            if response.status() == StatusCode::FORBIDDEN {
                requests.forbidden.lock().unwrap().push(format!("{method} {uri}"));
            }
            let mut used = requests.used.lock().unwrap();
            // Server-side apply of a new object needs the right to create one.
            if method == Method::PATCH && response.status() == StatusCode::CREATED {
                used.insert(format!("{resource} create"));
            }
            used.insert(format!("{resource} {verb}"));
            drop(used);
            Ok(response)
        })
    }
}

/// Returns the resource and the verb of a request; `None` for one that needs no role, such as `/version`.
fn access(method: &Method, uri: &str) -> Option<(String, &'static str)> {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let path = path.split_once("/api").map_or(path, |(_, rest)| rest);
    let mut parts: Vec<_> = path.split('/').collect();
    let group = match parts[0] {
        "" => String::new(),
        "s" => parts.remove(1).to_owned() + "/",
        _ => return None,
    };
    // `namespaces/NAME` precedes the resource.
    let mut rest = parts.get(2..)?;
    if rest.first() == Some(&"namespaces") && rest.len() > 2 {
        rest = &rest[2..];
    }
    let (resource, name, subresource) = (*rest.first()?, rest.get(1), rest.get(2));
    let verb = match method.as_str() {
        "GET" if query.contains("watch=") => "watch",
        "GET" if name.is_none() => "list",
        "GET" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        _ => "delete",
    };
    let subresource = subresource.map(|name| format!("/{name}")).unwrap_or_default();
    Some((format!("{group}{resource}{subresource}"), verb))
}

#[test]
fn requests_are_named_as_in_roles() {
    let check = |method: Method, uri: &str, expected: Option<&str>| {
        let access = access(&method, uri).map(|(resource, verb)| format!("{resource} {verb}"));
        assert_eq!(access.as_deref(), expected, "{method} {uri}");
    };
    check(Method::GET, "/version", None);
    check(Method::GET, "/api/v1/pods?limit=1", Some("pods list"));
    check(Method::GET, "https://127.0.0.1:1/api/v1/namespaces/a/pods/b", Some("pods get"));
    check(Method::GET, "/apis/apps/v1/deployments?watch=true", Some("apps/deployments watch"));
    let status = "/apis/langop.io/v1alpha1/namespaces/a/languagetools/b/status?force=true";
    check(Method::PATCH, status, Some("langop.io/languagetools/status patch"));
    check(Method::PUT, "/apis/c.io/v1/namespaces/a/leases/b", Some("c.io/leases update"));
    check(Method::DELETE, "/api/v1/namespaces/a/services/b", Some("services delete"));
}
