//! The listening sockets in a `Toolyard` document.

use std::{cell::RefCell, path::PathBuf, time::Duration};

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::{
    cursor::ValueCursor,
    field_type::{
        CountField, CustomField, FieldType, FileField, FlagField, NonEmptyListField, TextField, TimeoutField,
    },
    formats::{self, ListenAddress},
    object_schema::SchemaDefinitions,
    section::{nested, section},
};

section! {
    /// `tls`: encryption of TCP connections. Relative paths start at the folder of the document.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListenerTls = "tls" {
        /// The certificate, followed by its chain, as PEM. A path relative to the folder of the document.
        pub certificate: PathBuf = "certFile", FileField, required;
        /// Its private key, as PEM.
        pub key: PathBuf = "keyFile", FileField, required;
        /// Authorities of client certificates, as PEM. By default clients need no certificate.
        pub client_authority: Option<PathBuf> = "clientCAFile", FileField, optional;
    }
}

section! {
    /// `grpc`: the tools as a gRPC service, `omnia.tools.v1.ToolService`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GrpcService: Default = "grpc" {
        /// Address to listen on for gRPC: an IP address and a port, or `unix:` and the path of a socket; or a list of
        /// these. `--grpc` on the command line takes precedence. Default: none. `tls` and `proxyProtocol` apply, and the
        /// limits of connections a second time.
        pub listen: Vec<ListenAddress> = "listen", GRPC_LISTEN, described Vec::new();
    }
}

section! {
    /// `console`: the web page for people, at `/`. It uses the REST API with the key that they sign in with.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ConsoleService: Default = "console" {
        /// Serve the console.
        pub enabled: bool = "enabled", FlagField, default true;
        /// Address to serve the console on, with everything that `listen` serves: an IP address and a port, or `unix:`
        /// and the path of a socket; or a list of these. Default: the addresses of `listen`, which do not serve the
        /// console otherwise.
        pub listen: Vec<ListenAddress> = "listen", CONSOLE_LISTEN, described Vec::new();
        /// Maximum number of browsers that are signed in; beyond it the oldest one is signed out.
        pub sessions: usize = "sessions", CountField, default 1_000;
        /// Time after which a browser has to sign in again.
        pub session_time: Duration = "sessionTime", TimeoutField, default Duration::from_secs(12 * 60 * 60);
        /// URL of a trace in a viewer of traces, with `{traceId}` in place of its id. The calls of the console are links
        /// to it. Default: none.
        pub trace_url: Option<String> = "traceURL",
            TextField::new(formats::trace_url)
                .secret()
                .pattern(r"\$\{|^https?://[^@]+\{traceId\}")
                .examples(&["https://jaeger.example.com/trace/{traceId}"]),
            optional;
    }
}

section! {
    /// `proxyProtocol`: connections that must start with a header of the PROXY protocol.
    struct ProxyProtocol = "proxyProtocol" {
        /// Networks or addresses of the load balancers. Each of their connections must start with the header; other
        /// connections must not.
        from: Vec<IpNet> = "from",
            NonEmptyListField(
                TextField::new(formats::network)
                    .pattern("^[0-9A-Fa-f:.]+(/[0-9]+)?$")
                    .examples(&["10.0.0.0/8", "::1"])
            ),
            required;
    }
}

/// `listen`: one address, or several.
pub(crate) const LISTEN: CustomField<Vec<ListenAddress>> =
    CustomField { read: listen, schema: listen_schema };

/// `listen` of gRPC: one address, or several.
const GRPC_LISTEN: CustomField<Vec<ListenAddress>> =
    CustomField { read: listen, schema: |definitions| json!({"anyOf": addresses(definitions)}) };

/// `listen` of the console: one address, or several.
const CONSOLE_LISTEN: CustomField<Vec<ListenAddress>> =
    CustomField { read: listen, schema: |definitions| json!({"anyOf": addresses(definitions)}) };

/// `proxyProtocol`: the networks of load balancers.
pub(crate) const PROXY_PROTOCOL: CustomField<Vec<IpNet>> = CustomField {
    read: |cursor| nested::<ProxyProtocol>().read(cursor).map(|proxies| proxies.from),
    schema: |definitions| nested::<ProxyProtocol>().schema(definitions),
};

fn listen(cursor: ValueCursor<'_>) -> Option<Vec<ListenAddress>> {
    if !cursor.is_list() {
        return Some(vec![cursor.listen()?]);
    }
    let known = RefCell::new(Vec::new());
    cursor.non_empty_list(|cursor| {
        let address = cursor.clone().listen()?;
        // The system chooses another port for each port 0.
        let may_repeat = matches!(address, ListenAddress::Tcp(address) if address.port() == 0);
        if !may_repeat && known.borrow().contains(&address) {
            cursor.report(cursor.problem("this address is already in the list"));
            return None;
        }
        known.borrow_mut().push(address.clone());
        Some(address)
    })
}

fn listen_schema(definitions: &mut SchemaDefinitions) -> Value {
    json!({"default": "127.0.0.1:8080", "anyOf": addresses(definitions)})
}

/// Returns the schemas of one address and of several.
fn addresses(definitions: &mut SchemaDefinitions) -> [Value; 2] {
    let address = json!({
        "type": "string",
        "pattern": r"\$\{|^[0-9.]+:[0-9]+$|^\[[0-9A-Fa-f:.%]+\]:[0-9]+$|^unix:(/$|/?[^/])",
        "examples": ["127.0.0.1:8080", "[::]:8080", "unix:/run/toolyard.sock"],
    });
    let address = definitions.value("listen", address);
    let list = json!({"type": "array", "minItems": 1, "items": address});
    [address, list]
}
