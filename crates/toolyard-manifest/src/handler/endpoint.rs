//! `endpoint`: the address of a handler's server.

use crate::{
    cursor::ValueCursor,
    formats::{self, FormatError},
};

/// The format of a handler type's endpoints.
pub(super) struct EndpointFormat<T> {
    /// Text before the host and the port of a Kubernetes service.
    pub(super) service_prefix: &'static str,
    pub(super) parse: fn(&str) -> Result<T, FormatError>,
}

/// Reads the object `endpoint` of a handler. `namespace` is that of its registry.
pub(super) fn read<T>(cursor: ValueCursor<'_>, namespace: &str, format: &EndpointFormat<T>) -> Option<T> {
    let mut fields = cursor.fields()?;
    let service = fields.optional("serviceRef", |cursor| Some(service_authority(cursor, namespace)));
    let endpoint = match service {
        Some(service) => {
            fields.reject_misplaced(&["url"], "`serviceRef` already sets the endpoint");
            service.and_then(|service| (format.parse)(&format!("{}{service}", format.service_prefix)).ok())
        }
        None => fields.required("url", |cursor| cursor.parse_secret(format.parse)),
    };
    fields.reject_unsupported(&["selector"]);
    fields.finish();
    endpoint
}

/// Reports that a handler has no endpoint.
pub(super) fn report_missing(handler: &ValueCursor<'_>) {
    handler.report(handler.problem("this handler has no endpoint").expected("`endpoint: {url: …}`"));
}

/// Reads a reference to a Kubernetes service and returns its cluster DNS name and port.
fn service_authority(cursor: ValueCursor<'_>, namespace: &str) -> Option<String> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(formats::service_name));
    let namespace =
        fields.with_default("namespace", |cursor| cursor.parse(formats::namespace), namespace.to_owned());
    let port = fields.required("port", |cursor| cursor.number(1, 65535));
    fields.finish();
    Some(format!("{}.{namespace}.svc.cluster.local:{}", name?, port?))
}
