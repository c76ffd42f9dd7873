//! The reader of the listening sockets in a `Toolyard` document.

use std::path::PathBuf;

use ipnet::IpNet;

use crate::{
    cursor::ValueCursor,
    formats::{self, ListenAddress},
};

/// `tls`: encryption of TCP connections. Relative paths start at the folder of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// `certFile`: the certificate, followed by its chain, as PEM.
    pub certificate: PathBuf,
    /// `keyFile`: its private key, as PEM.
    pub key: PathBuf,
    /// `clientCAFile`: authorities of client certificates. `None`: clients need no certificate.
    pub client_authority: Option<PathBuf>,
}

/// Reads `listen`: one address, or several.
pub(crate) fn listen(cursor: ValueCursor<'_>) -> Option<Vec<ListenAddress>> {
    if cursor.is_list() { cursor.non_empty_list(ValueCursor::listen) } else { Some(vec![cursor.listen()?]) }
}

pub(crate) fn tls(cursor: ValueCursor<'_>) -> Option<ListenerTls> {
    let mut fields = cursor.fields()?;
    let path = |cursor: ValueCursor<'_>| Some(cursor.resolve_path(&cursor.clone().parse(formats::file)?));
    let certificate = fields.required("certFile", path);
    let key = fields.required("keyFile", path);
    let client_authority = fields.optional("clientCAFile", path);
    fields.finish();
    Some(ListenerTls { certificate: certificate?, key: key?, client_authority })
}

/// Reads `proxyProtocol`: the networks of load balancers, whose connections must start with a header of the PROXY
/// protocol.
pub(crate) fn proxy_protocol(cursor: ValueCursor<'_>) -> Option<Vec<IpNet>> {
    let mut fields = cursor.fields()?;
    let from = fields.required("from", |cursor| cursor.non_empty_list(|item| item.parse(formats::network)));
    fields.finish();
    from
}
