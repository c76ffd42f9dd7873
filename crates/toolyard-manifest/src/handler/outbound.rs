//! Settings of outgoing connections: the proxy, and the certificates that are trusted.

use std::path::PathBuf;

use http::Uri;

use super::{SecretString, secrets::SecretCollector};
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats::{self, FormatError},
};

/// The fields of outgoing connections.
pub(crate) const FIELDS: &[&str] = &["proxy", "tlsCAPath", "tlsInsecureSkipVerify"];

/// The way to the server of a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundSettings {
    /// `proxy`. Default: that of the environment.
    pub proxy: Option<ProxyChoice>,
    /// `tlsCAPath`: certificate authorities that are trusted in addition to those of the system.
    pub authority: Option<PathBuf>,
    /// `tlsInsecureSkipVerify`: accept any server certificate. Default: false.
    pub skips_verification: bool,
}

/// The proxy of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyChoice {
    /// No proxy, whatever the environment says.
    Direct,
    /// The URL of a proxy, which may have a user and a password.
    Url(SecretString),
}

impl OutboundSettings {
    /// Reads the fields.
    pub(super) fn read(fields: &mut ObjectFields<'_>) -> Self {
        let path = |cursor: ValueCursor<'_>| Some(cursor.resolve_path(&cursor.clone().parse(formats::file)?));
        Self {
            proxy: fields.optional("proxy", |cursor| cursor.parse_secret(proxy)),
            authority: fields.optional("tlsCAPath", path),
            skips_verification: fields.with_default("tlsInsecureSkipVerify", ValueCursor::flag, false),
        }
    }

    /// Adds the password of the proxy.
    pub(super) fn add_secrets(&self, secrets: &mut SecretCollector) {
        if let Some(ProxyChoice::Url(url)) = &self.proxy {
            secrets.url(url.expose());
        }
    }
}

/// Parses the URL of a proxy, or `none`.
fn proxy(text: &str) -> Result<ProxyChoice, FormatError> {
    const INVALID: FormatError =
        FormatError::new("the URL of a proxy", "`none`, or a URL such as http://proxy.example.com:3128");
    if text == "none" {
        return Ok(ProxyChoice::Direct);
    }
    if text.starts_with("https://") || text.starts_with("socks") {
        return Err(
            INVALID.hint("the connection to a proxy is plain HTTP; `https` servers are reached by CONNECT")
        );
    }
    let url: Uri = text.parse().map_err(|_| INVALID)?;
    let is_valid = url.scheme_str() == Some("http") && matches!(url.path(), "" | "/") && url.host().is_some();
    if is_valid { Ok(ProxyChoice::Url(SecretString::new(text.to_owned()))) } else { Err(INVALID) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies() {
        let check = |text: &str, expected: Result<Option<&str>, ()>| {
            let url = |choice| match choice {
                ProxyChoice::Direct => None,
                ProxyChoice::Url(url) => Some(url.expose().to_owned()),
            };
            let read = proxy(text).map(url).map_err(|_| ());
            assert_eq!(read.as_ref().map(Option::as_deref), expected.as_ref().map(|url| *url), "{text}");
        };
        check("none", Ok(None));
        check("http://a:3128", Ok(Some("http://a:3128")));
        check("http://me:secret@a/", Ok(Some("http://me:secret@a/")));
        for invalid in ["", "a:3128", "https://a", "socks5://a", "http://a/path", "http://"] {
            check(invalid, Err(()));
        }
    }
}
