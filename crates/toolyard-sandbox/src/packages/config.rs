//! pip's own configuration outside the sandbox: the source of packages and the proxy to it.
//!
//! pip reads it (`pip config list`). The installer in the sandbox gets the settings about the source of packages as
//! environment variables, and no other settings. They are not logged, because URLs may contain credentials.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde::{Deserialize, Serialize};

use super::PackageError;
use super::command::InstallerProgram;
use super::proxy::{HostPort, UpstreamProxy, host_port};

/// Hosts of the default index and of its files.
const PYPI_HOSTS: [&str; 2] = ["pypi.org", "files.pythonhosted.org"];

/// Settings that pip in the sandbox gets unchanged.
const FORWARDED_SETTINGS: [&str; 9] = [
    "extra-index-url",
    "find-links",
    "index-url",
    "no-index",
    "pre",
    "prefer-binary",
    "retries",
    "timeout",
    "trusted-host",
];

/// Settings that name files, whose contents the installer in the sandbox gets, with the variables of uv for them.
const FILE_SETTINGS: [(&str, &str); 2] = [("cert", "SSL_CERT_FILE"), ("client-cert", "SSL_CLIENT_CERT")];

/// Settings of pip that uv supports, with its variables and the separator of several values.
const UV_VARIABLES: [(&str, &str, &str); 6] = [
    ("extra-index-url", "UV_EXTRA_INDEX_URL", " "),
    ("find-links", "UV_FIND_LINKS", ","),
    ("index-url", "UV_INDEX_URL", " "),
    ("retries", "UV_HTTP_RETRIES", " "),
    ("timeout", "UV_HTTP_TIMEOUT", " "),
    ("trusted-host", "UV_INSECURE_HOST", " "),
];

/// Maximum size of a certificate file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Settings about the source of packages.
#[derive(Default, Clone, PartialEq, Eq)]
pub(super) struct PipConfig {
    settings: BTreeMap<String, String>,
}

/// A file that a setting names.
#[derive(Serialize, Deserialize)]
pub(super) struct SettingFile {
    /// Variable of the installer for the file.
    pub(super) variable: String,
    /// File name of the copy.
    pub(super) name: String,
    pub(super) content: String,
}

/// Returns the environment variable of pip for a setting.
fn variable(name: &str) -> String {
    format!("PIP_{}", name.to_ascii_uppercase().replace('-', "_"))
}

impl PipConfig {
    /// Parses the output of `pip config list`: `global.index-url='https://...'`.
    pub(super) fn parse(output: &str) -> Self {
        let mut settings = Vec::new();
        for (key, value) in output.lines().filter_map(|line| line.split_once('=')) {
            let Some((section, name)) = key.trim().rsplit_once('.') else { continue };
            let rank =
                ["global", "install", ":env:"].iter().position(|section_name| *section_name == section);
            if let (Some(rank), Some(value)) = (rank, parse_repr(value.trim())) {
                settings.push((rank, name.to_ascii_lowercase().replace('_', "-"), value));
            }
        }
        // The environment overrides the section of one command, which overrides the global section.
        settings.sort_by_key(|(rank, ..)| *rank);
        Self { settings: settings.into_iter().map(|(_, name, value)| (name, value)).collect() }
    }

    fn get(&self, name: &str) -> &str {
        self.settings.get(name).map(String::as_str).unwrap_or_default()
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(&*self.get(name).to_ascii_lowercase(), "1" | "true" | "yes" | "on" | "y" | "t")
    }

    /// True if no index is used.
    pub(super) fn has_no_index(&self) -> bool {
        self.is_on("no-index")
    }

    /// Environment of the installer in the sandbox, except for its files.
    pub(super) fn env(&self, installer: &InstallerProgram) -> Vec<(String, String)> {
        match installer {
            InstallerProgram::Pip { .. } => self.pip_env(),
            InstallerProgram::Uv { .. } => self.uv_env(),
        }
    }

    fn pip_env(&self) -> Vec<(String, String)> {
        let mut env = vec![("PIP_CONFIG_FILE".to_owned(), "/dev/null".to_owned())];
        for name in FORWARDED_SETTINGS {
            env.extend(self.joined_values(name, " ").map(|values| (variable(name), values)));
        }
        env
    }

    fn uv_env(&self) -> Vec<(String, String)> {
        // Certificates of the system, under the names of older and newer versions.
        let mut env =
            ["UV_NATIVE_TLS", "UV_SYSTEM_CERTS"].map(|name| (name.to_owned(), "1".to_owned())).to_vec();
        for (name, variable, separator) in UV_VARIABLES {
            env.extend(self.joined_values(name, separator).map(|values| (variable.to_owned(), values)));
        }
        if self.is_on("pre") {
            env.push(("UV_PRERELEASE".to_owned(), "allow".to_owned()));
        }
        env
    }

    /// Returns the values of a setting on one line.
    fn joined_values(&self, name: &str, separator: &str) -> Option<String> {
        let value = self.settings.get(name)?;
        Some(value.split_whitespace().collect::<Vec<_>>().join(separator))
    }

    /// Returns the files that the installer in the sandbox needs.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn files(&self, installer: &InstallerProgram) -> Result<Vec<SettingFile>, PackageError> {
        let read = |(name, uv_variable): &(&str, &str)| {
            let why =
                |error| PackageError::NoInterpreter(format!("the file of its setting `{name}`: {error}"));
            let content = read_file(Path::new(self.get(name))).map_err(why)?;
            let variable = match installer {
                InstallerProgram::Pip { .. } => variable(name),
                InstallerProgram::Uv { .. } => (*uv_variable).to_owned(),
            };
            Ok(SettingFile { variable, name: format!("{name}.pem"), content })
        };
        FILE_SETTINGS.iter().filter(|(name, _)| !self.get(name).is_empty()).map(read).collect()
    }

    /// Returns the host folders in which pip looks for packages.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let links = self.get("find-links").split_whitespace();
        let paths = links.map(|link| PathBuf::from(link.strip_prefix("file://").unwrap_or(link)));
        paths.filter(|path| path.is_absolute() && path.exists()).collect()
    }

    /// Returns the hosts of packages, and `extra_hosts` with their port or both usual ones.
    pub(super) fn hosts(&self, extra_hosts: &[String]) -> BTreeSet<HostPort> {
        let mut hosts: BTreeSet<_> = self.urls().filter_map(host_of_url).collect();
        if hosts.contains(&(PYPI_HOSTS[0].to_owned(), 443)) {
            hosts.insert((PYPI_HOSTS[1].to_owned(), 443));
        }
        for name in extra_hosts {
            hosts.extend(host_ports(name));
        }
        hosts
    }

    fn urls(&self) -> impl Iterator<Item = &str> {
        let default = if self.settings.contains_key("index-url") { "" } else { PYPI_URL };
        let index = [self.get("index-url"), self.get("extra-index-url"), default];
        let index = if self.has_no_index() { [""; 3] } else { index };
        index.into_iter().chain([self.get("find-links")]).flat_map(str::split_whitespace)
    }

    /// Returns the proxy for all requests.
    pub(super) fn upstream(&self) -> Option<UpstreamProxy> {
        let uri: Uri = self.get("proxy").parse().ok()?;
        let authority = uri.authority()?.as_str();
        let (user, address) = authority.rsplit_once('@').map_or((None, authority), |(u, a)| (Some(u), a));
        let address: Uri = format!("http://{address}/").parse().ok()?;
        let authorization = user.map(|user| format!("Basic {}", STANDARD.encode(percent_decoded(user))));
        Some(UpstreamProxy { target: host_port(&address, Some(80))?, authorization })
    }
}

/// URL of the default index.
const PYPI_URL: &str = "https://pypi.org/simple";

/// Returns the host and port of a URL, which may have credentials.
fn host_of_url(url: &str) -> Option<HostPort> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let port = match scheme.to_ascii_lowercase().as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    host_port(&format!("http://{address}/").parse().ok()?, Some(port))
}

/// Returns a host with its port, or with both usual ones.
fn host_ports(name: &str) -> Vec<HostPort> {
    let Ok(uri) = format!("http://{name}/").parse::<Uri>() else { return Vec::new() };
    match host_port(&uri, None) {
        Some(target) => vec![target],
        None => [443, 80].into_iter().filter_map(|port| host_port(&uri, Some(port))).collect(),
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let hexadecimal = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let bytes = text.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = if byte == b'%' { bytes.get(at + 1..at + 3).and_then(hexadecimal) } else { None };
        decoded.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

fn read_file(path: &Path) -> io::Result<String> {
    io::read_to_string(File::open(path)?.take(MAX_FILE_BYTES))
}

/// Parses a string in the notation of Python's `repr`.
fn parse_repr(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut inner = text.strip_prefix(quote)?.strip_suffix(quote)?.chars();
    let mut read = String::new();
    while let Some(c) = inner.next() {
        match c {
            '\\' => read.push(match inner.next()? {
                'n' | 'r' | 't' => '\n',
                c @ ('\\' | '\'' | '"') => c,
                _ => return None,
            }),
            c => read.push(c),
        }
    }
    Some(read)
}

#[cfg(test)]
mod tests;
