//! Causes of failed connections, for callers. They name no address, host or certificate.

use std::error::Error;
use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError};
use toolyard_core::CauseCode;

use crate::egress::ResolveError;
use crate::proxy::ProxyError;
use crate::tls_verifier::SelfSigned;

/// Returns the reason of a failed connection, if it is among the causes of the error.
#[must_use]
pub fn connection_reason(error: &(dyn Error + 'static)) -> Option<&'static str> {
    connection_cause(error).map(|(_, reason)| reason)
}

/// Returns the kind and the reason of a failed connection, if it is among the causes of the error.
#[must_use]
pub fn connection_cause(error: &(dyn Error + 'static)) -> Option<ConnectionCause> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(reason) = cause_of(error) {
            return Some(reason);
        }
        cause = error.source();
    }
    None
}

/// The kind of a failed connection and its reason.
pub type ConnectionCause = (CauseCode, &'static str);

fn cause_of(error: &(dyn Error + 'static)) -> Option<ConnectionCause> {
    if let Some(ResolveError::NameLookup(error)) = error.downcast_ref() {
        return Some((CauseCode::Dns, lookup_reason(error)));
    }
    if let Some(error) = error.downcast_ref::<ProxyError>() {
        return Some((CauseCode::Proxy, proxy_reason(error)));
    }
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(tls_cause(error));
    }
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        return http_cause(error);
    }
    #[cfg(feature = "http2")]
    if let Some(error) = error.downcast_ref::<h2::Error>() {
        return http2_cause(error);
    }
    let error: &io::Error = error.downcast_ref()?;
    // The wrapped error is not among the causes: `source` skips it.
    let wrapped = error.get_ref().and_then(|wrapped| connection_cause(wrapped));
    wrapped.or_else(|| io_cause(error.kind()))
}

/// Returns the reason of a failed lookup. Only the text of the system's error tells them apart.
fn lookup_reason(error: &io::Error) -> &'static str {
    match error.to_string().contains("Temporary failure") {
        true => "DNS: temporary failure",
        false => "DNS: no such host",
    }
}

fn proxy_reason(error: &ProxyError) -> &'static str {
    match error {
        ProxyError::Unreachable(_) => "the proxy cannot be reached",
        ProxyError::Refused(407) => "the proxy wants credentials",
        ProxyError::Refused(_) => "the proxy refuses the connection",
        ProxyError::NotHttp => "the proxy does not speak HTTP",
        ProxyError::Broken(_) => "the connection to the proxy broke",
    }
}

fn http_cause(error: &hyper::Error) -> Option<ConnectionCause> {
    if error.is_incomplete_message() {
        Some((CauseCode::ConnectionBroken, "connection closed"))
    } else if error.is_parse() {
        Some((CauseCode::Protocol, "the response is not HTTP"))
    } else if error.is_timeout() {
        // A client has no other limit of its own.
        Some((CauseCode::Timeout, "no answer to pings"))
    } else {
        None
    }
}

/// Returns the cause of a failed connection of HTTP/2. The server may reset a single stream for other reasons.
#[cfg(feature = "http2")]
fn http2_cause(error: &h2::Error) -> Option<ConnectionCause> {
    if let Some(error) = error.get_io() {
        return cause_of(error);
    }
    if error.is_library() {
        let reason = match error.reason() {
            _ if error.is_reset() => "the response's headers are invalid or too long",
            Some(h2::Reason::ENHANCE_YOUR_CALM | h2::Reason::COMPRESSION_ERROR) => {
                "the server sends too many frames or too long headers"
            }
            _ => "the server does not speak HTTP/2",
        };
        return Some((CauseCode::Protocol, reason));
    }
    (error.is_go_away() || error.is_reset())
        .then_some((CauseCode::ConnectionBroken, "the server closed the connection or the stream"))
}

const fn io_cause(kind: ErrorKind) -> Option<ConnectionCause> {
    use CauseCode::{ConnectionBroken, ConnectionRefused, Timeout, Unreachable};
    Some(match kind {
        ErrorKind::ConnectionRefused => (ConnectionRefused, "connection refused"),
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => (ConnectionBroken, "connection reset"),
        ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof | ErrorKind::NotConnected => {
            (ConnectionBroken, "connection closed")
        }
        ErrorKind::TimedOut => (Timeout, "connecting timed out"),
        ErrorKind::HostUnreachable => (Unreachable, "host unreachable"),
        ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => (Unreachable, "network unreachable"),
        _ => return None,
    })
}

fn tls_cause(error: &rustls::Error) -> ConnectionCause {
    let reason = match error {
        rustls::Error::InvalidCertificate(error) => {
            return (CauseCode::Certificate, certificate_reason(error));
        }
        rustls::Error::InvalidMessage(_) => "TLS: the server does not speak TLS",
        rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "TLS: no common version or cipher"
        }
        rustls::Error::AlertReceived(_) => "TLS: the server refused the handshake",
        _ => "TLS: the handshake failed",
    };
    (CauseCode::TlsHandshake, reason)
}

fn certificate_reason(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "TLS: expired certificate",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "TLS: certificate that is not valid yet"
        }
        CertificateError::Revoked => "TLS: revoked certificate",
        CertificateError::UnknownIssuer => "TLS: certificate of an unknown issuer",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "TLS: certificate of another host"
        }
        CertificateError::Other(other) if other.0.is::<SelfSigned>() => "TLS: self-signed certificate",
        _ => "TLS: invalid certificate",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    /// An error with a cause.
    #[derive(Debug, thiserror::Error)]
    #[error("at 10.0.0.1")]
    struct Outer(#[source] io::Error);

    #[test]
    fn reasons_name_the_fault_alone() {
        let tls = |error: rustls::Error| io::Error::new(ErrorKind::InvalidData, error);
        let certificate = |error| tls(rustls::Error::InvalidCertificate(error));
        let lookup = |text: &'static str| io::Error::other(ResolveError::NameLookup(io::Error::other(text)));
        let cases = [
            (io::Error::from(ErrorKind::ConnectionRefused), Some("connection refused")),
            (io::Error::new(ErrorKind::ConnectionReset, "by 10.0.0.1"), Some("connection reset")),
            (io::Error::from(ErrorKind::HostUnreachable), Some("host unreachable")),
            (io::Error::from(ErrorKind::TimedOut), Some("connecting timed out")),
            (io::Error::other("secret"), None),
            (lookup("Name or service not known"), Some("DNS: no such host")),
            (lookup("Temporary failure in name resolution"), Some("DNS: temporary failure")),
            (certificate(CertificateError::UnknownIssuer), Some("TLS: certificate of an unknown issuer")),
            (certificate(CertificateError::NotValidForName), Some("TLS: certificate of another host")),
            (
                certificate(CertificateError::Other(OtherError(Arc::new(SelfSigned)))),
                Some("TLS: self-signed certificate"),
            ),
            (tls(rustls::Error::HandshakeNotComplete), Some("TLS: the handshake failed")),
        ];
        for (error, expected) in cases {
            let text = format!("{error:?}");
            assert_eq!(connection_reason(&Outer(error)), expected, "{text}");
        }
    }
}
