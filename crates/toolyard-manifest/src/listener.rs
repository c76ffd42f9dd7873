//! How clients reach the process: what a `Toolyard` document says of its sockets.

use std::path::PathBuf;

use ipnet::IpNet;

use crate::{
    cursor::Cursor,
    forms::{self, Listen},
};

/// `tls`: how connections on TCP are encrypted. Paths begin at the folder of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// `certFile`: the certificate, and behind it those that lead to an authority, as PEM.
    pub certificate: PathBuf,
    /// `keyFile`: its private key, as PEM.
    pub key: PathBuf,
    /// `clientCAFile`: authorities, one of which has to vouch for each client. None: clients need no certificate.
    pub client_authority: Option<PathBuf>,
}

/// `listen`: one place, or several.
pub(crate) fn listen(cursor: Cursor<'_>) -> Option<Vec<Listen>> {
    if cursor.is_list() { cursor.non_empty_list(Cursor::listen) } else { Some(vec![cursor.listen()?]) }
}

pub(crate) fn tls(cursor: Cursor<'_>) -> Option<ListenerTls> {
    let mut fields = cursor.fields()?;
    let path = |cursor: Cursor<'_>| Some(cursor.path_from_here(&cursor.clone().parse(forms::file)?));
    let certificate = fields.required("certFile", path);
    let key = fields.required("keyFile", path);
    let client_authority = fields.optional("clientCAFile", path);
    fields.finish();
    Some(ListenerTls { certificate: certificate?, key: key?, client_authority })
}

/// `proxyProtocol`: the networks of those who have to begin with a header of the PROXY protocol.
pub(crate) fn proxy_protocol(cursor: Cursor<'_>) -> Option<Vec<IpNet>> {
    let mut fields = cursor.fields()?;
    let from = fields.required("from", |cursor| cursor.non_empty_list(|item| item.parse(forms::network)));
    fields.finish();
    from
}
