//! TLS for connections to a server, with the system's root certificates.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` name others, as for OpenSSL.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{client, rustls};

/// TLS for connections, with the trusted root certificates.
#[derive(Clone)]
pub(super) struct PostgresTls(TlsConnector);

impl PostgresTls {
    pub(super) fn with_system_roots() -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        // Roots that cannot be parsed are not trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

/// A connection before its TLS handshake, with the expected server name.
pub(super) struct TlsHandshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// An encrypted connection.
pub(super) struct PostgresTlsStream(client::TlsStream<Socket>);

impl MakeTlsConnect<Socket> for PostgresTls {
    type Stream = PostgresTlsStream;
    type TlsConnect = TlsHandshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<TlsHandshake, InvalidDnsNameError> {
        Ok(TlsHandshake { connector: self.0.clone(), name: ServerName::try_from(domain.to_owned())? })
    }
}

impl TlsConnect<Socket> for TlsHandshake {
    type Stream = PostgresTlsStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<PostgresTlsStream>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, socket).await.map(PostgresTlsStream) })
    }
}

impl TlsStream for PostgresTlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for PostgresTlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PostgresTlsStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
