//! `programs` in a `Toolyard` document: the environment of the programs of stdio servers.

use crate::{
    field_type::{ListField, TextField},
    formats,
    section::section,
};

/// The variables about proxies, certificates, and the settings of launchers. Each is also passed in lower case.
const NETWORK_VARIABLES: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_ENV_PROXY",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_CAFILE",
    "NPM_CONFIG_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "NPM_CONFIG_NOPROXY",
    "NPM_CONFIG_STRICT_SSL",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_USERCONFIG",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_CERT",
    "PIP_PROXY",
    "PIP_TRUSTED_HOST",
    "PIP_CONFIG_FILE",
    "PIP_CACHE_DIR",
    "UV_INDEX",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "UV_CONFIG_FILE",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "UV_INSECURE_HOST",
    "PIPX_HOME",
    "GOPROXY",
    "GOFLAGS",
    "GONOSUMDB",
    "GOSUMDB",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
];

section! {
    /// `programs` in a `Toolyard` document: the environment of the programs of stdio servers. They also have `HOME`,
    /// `LANG`, `LC_ALL`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER`, `XDG_CACHE_HOME` and
    /// `XDG_RUNTIME_DIR`, and `env` of their handler.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProgramEnvironment: Default = "programs" {
        /// Environment variables of the gateway that programs have too, in upper and lower case. An empty list passes
        /// none. Default: those about proxies, certificates, and the settings of launchers.
        ///
        /// A server behind a proxy cannot be installed or work without them.
        pub environment: Vec<String> = "environment", ListField(VARIABLE),
            described NETWORK_VARIABLES.iter().map(|name| (*name).to_owned()).collect();
        /// Further variables, in addition to `environment`.
        pub more_environment: Vec<String> = "moreEnvironment", ListField(VARIABLE), default Vec::new();
    }
}

const VARIABLE: TextField<String> = TextField::new(variable).pattern("^[^=]+$");

fn variable(text: &str) -> Result<String, formats::FormatError> {
    formats::variable_name(text).map(|()| text.to_owned())
}

impl ProgramEnvironment {
    /// Returns the names of all variables: as they are written, and in lower case.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let names = self.environment.iter().chain(&self.more_environment);
        let mut names: Vec<_> = names.flat_map(|name| [name.clone(), name.to_lowercase()]).collect();
        names.sort();
        names.dedup();
        names
    }
}
