//! The reader of `endpoint`: where a handler's server is.

use crate::{
    cursor::Cursor,
    forms::{self, Invalid},
};

/// How a type of handler writes where its server is.
pub(super) struct Form<T> {
    /// What stands before the host and the port of a service.
    pub(super) before_service: &'static str,
    pub(super) parse: fn(&str) -> Result<T, Invalid>,
}

/// The object `endpoint` of a handler. `namespace` is that of its registry.
pub(super) fn read<T>(cursor: Cursor<'_>, namespace: &str, form: &Form<T>) -> Option<T> {
    let mut fields = cursor.fields()?;
    let service = fields.optional("serviceRef", |cursor| Some(service(cursor, namespace)));
    let endpoint = match service {
        Some(service) => {
            fields.misplaced(&["url"], "`serviceRef` says where it is");
            service.and_then(|service| (form.parse)(&format!("{}{service}", form.before_service)).ok())
        }
        None => fields.required("url", |cursor| cursor.parse_secret(form.parse)),
    };
    fields.not_yet(&["selector"]);
    fields.finish();
    endpoint
}

/// Reports that a handler has no endpoint.
pub(super) fn missing(handler: &Cursor<'_>) {
    handler.report(handler.problem("this handler has no endpoint").expected("`endpoint: {url: …}`"));
}

/// A Kubernetes service, by the name that the cluster's DNS has for it.
fn service(cursor: Cursor<'_>, namespace: &str) -> Option<String> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(forms::service_name));
    let namespace =
        fields.with_default("namespace", |cursor| cursor.parse(forms::namespace), namespace.to_owned());
    let port = fields.required("port", |cursor| cursor.number(1, 65535));
    fields.finish();
    Some(format!("{}.{namespace}.svc.cluster.local:{}", name?, port?))
}
