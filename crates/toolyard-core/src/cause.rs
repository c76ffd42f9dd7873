//! Causes of failures of servers: a code, a message, and the last lines that the program of a server has written.
//!
//! [`CauseCode::row`] is the only table of codes, and [`FailureCause::lines`] the only rendering of a cause.

use std::borrow::Cow;
use std::fmt;

use crate::secrets::SecretRedactor;

/// Maximum number of lines of output in a cause.
pub const MAX_OUTPUT_LINES: usize = 3;

/// Maximum length of a line of output in characters, and the part of it that its end has.
const MAX_LINE_LENGTH: usize = 200;
const LINE_END_LENGTH: usize = 80;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CauseCode {
    /// The program of the server has exited.
    ProcessExited,
    /// A signal has ended the program of the server.
    ProcessKilled,
    /// The program of the server does not exist.
    ProgramNotFound,
    /// The program of the server cannot be started.
    ProgramNotStarted,
    /// The name of the host cannot be resolved.
    Dns,
    /// The host refuses the connection.
    ConnectionRefused,
    /// The host cannot be reached.
    Unreachable,
    /// The connection broke.
    ConnectionBroken,
    /// The certificate of the server is not trusted.
    Certificate,
    /// The TLS handshake failed for another reason.
    TlsHandshake,
    /// The proxy refuses the connection.
    Proxy,
    /// No response in time.
    Timeout,
    /// The server wants credentials, or refuses those that were sent.
    Unauthorized,
    /// The server does not allow the request.
    Forbidden,
    /// Another HTTP status of failure.
    HttpStatus,
    /// A gRPC status of failure.
    GrpcStatus,
    /// The response is not what the protocol prescribes.
    Protocol,
    /// The credentials of the manifest cannot be read.
    Credentials,
    /// Several calls in a row have failed.
    BreakerOpen,
    /// The description of the service cannot be used.
    Description,
    /// The handler selects Services of a cluster, and the gateway watches none.
    NoCluster,
    /// The message broker cannot be reached.
    Broker,
    /// No worker announces itself on the message bus.
    NoWorker,
    /// Any other failure.
    Other,
}

/// One row of the table of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseRow {
    /// The code in JSON.
    pub wire: &'static str,
    /// The remedy, as an imperative; empty if the message says it.
    pub remedy: &'static str,
}

impl CauseCode {
    /// All codes.
    pub const ALL: [Self; 24] = [
        Self::ProcessExited,
        Self::ProcessKilled,
        Self::ProgramNotFound,
        Self::ProgramNotStarted,
        Self::Dns,
        Self::ConnectionRefused,
        Self::Unreachable,
        Self::ConnectionBroken,
        Self::Certificate,
        Self::TlsHandshake,
        Self::Proxy,
        Self::Timeout,
        Self::Unauthorized,
        Self::Forbidden,
        Self::HttpStatus,
        Self::GrpcStatus,
        Self::Protocol,
        Self::Credentials,
        Self::BreakerOpen,
        Self::Description,
        Self::NoCluster,
        Self::Broker,
        Self::NoWorker,
        Self::Other,
    ];

    /// Returns the name and the remedy of this code.
    #[must_use]
    pub const fn row(self) -> CauseRow {
        const fn row(wire: &'static str, remedy: &'static str) -> CauseRow {
            CauseRow { wire, remedy }
        }
        match self {
            Self::ProcessExited => row("process_exited", "run its command in a terminal and read its output"),
            Self::ProcessKilled => {
                row("process_killed", "check the memory limit `limits.processMemoryBytes`")
            }
            Self::ProgramNotFound => row("program_not_found", "install the program, or write its whole path"),
            Self::ProgramNotStarted => row("program_not_started", "check the permissions and `workDir`"),
            Self::Dns => row("dns", "check the host name, and the DNS of this machine"),
            Self::ConnectionRefused => row("connection_refused", "start the server, or correct the port"),
            Self::Unreachable => row("unreachable", "check the network, and `HTTPS_PROXY` and `NO_PROXY`"),
            Self::ConnectionBroken => row("connection_broken", "read the log of the server"),
            Self::Certificate => {
                row("certificate", "set `tlsCAPath` of the handler, or `SSL_CERT_FILE` of the gateway")
            }
            Self::TlsHandshake => row("tls_handshake", "check that the port speaks TLS, or use `http://`"),
            Self::Proxy => row("proxy", "check `proxy` of the handler, or `HTTPS_PROXY` and `NO_PROXY`"),
            Self::Timeout => row("timeout", "raise `timeouts.connect`, or `timeout` of the handler"),
            Self::Unauthorized => row("unauthorized", "set `auth` or `headers` of the handler"),
            Self::Forbidden => row("forbidden", "give the credentials the rights that the server wants"),
            Self::HttpStatus => row("http_status", "check the URL, and read the log of the server"),
            Self::GrpcStatus => row("grpc_status", "read the log of the server"),
            Self::Protocol => row("protocol", "check the URL and `transport`"),
            Self::Credentials => row("credentials", "check the file or variable of the credentials"),
            Self::BreakerOpen => {
                row("breaker_open", "read the log of the server; a call tries again after 30 s")
            }
            Self::Description => row("description", "check `specURL`, and the description itself"),
            Self::NoCluster => row(
                "no_cluster",
                "name the Service by `endpoint.serviceRef`, or run the gateway by the operator",
            ),
            Self::Broker => row("broker", "check `bus.url`, and start the broker"),
            Self::NoWorker => {
                row("no_worker", "start one by `toolyard worker`, with the same broker and `bus.exchange`")
            }
            Self::Other => row("failed", ""),
        }
    }

    /// Returns the remedy for a handler of this type of the manifest.
    #[must_use]
    pub fn remedy(self, handler_type: &str) -> &'static str {
        let other = (handler_type == "grpc").then(|| self.grpc_remedy()).flatten();
        other.unwrap_or(self.row().remedy)
    }

    /// Returns the remedy for a gRPC server, which has other settings and no URL.
    const fn grpc_remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::ConnectionBroken => {
                "read the log of the server; set `tls: true` if its port speaks TLS, and `tlsCertPath` and `tlsKeyPath` if it wants a client certificate"
            }
            Self::Certificate => {
                "use a name of the certificate in `endpoint`, or set `tlsCAPath`, or `SSL_CERT_FILE` of the gateway"
            }
            Self::TlsHandshake => {
                "check that the port speaks TLS, or set `tls: false`; set `tlsCertPath` and `tlsKeyPath` if the server wants a client certificate"
            }
            Self::Unreachable | Self::Proxy => "check the network, and `HTTPS_PROXY` and `NO_PROXY`",
            Self::Unauthorized => "set `auth` or `metadata` of the handler",
            Self::HttpStatus => "check the port, and the proxy before the server",
            Self::Protocol => "check the port; set `tls: true` if it speaks TLS",
            Self::Description => "check `descriptorSet` and `filter` of `grpcConfig`",
            _ => return None,
        })
    }

    /// Parses the name of a code. Names of later versions are [`CauseCode::Other`].
    #[must_use]
    pub fn parse(wire: &str) -> Self {
        Self::ALL.into_iter().find(|code| code.row().wire == wire).unwrap_or(Self::Other)
    }

    /// Returns the code of an HTTP status of failure.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            407 => Self::Proxy,
            _ => Self::HttpStatus,
        }
    }
}

/// The cause of a failure of a server, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureCause {
    /// The kind of the failure.
    pub code: CauseCode,
    /// The failure in one line.
    pub message: String,
    /// The last lines that the program of the server has written to its standard error, at most
    /// [`MAX_OUTPUT_LINES`].
    pub output: Vec<String>,
}

impl FailureCause {
    /// Creates a cause without output.
    pub fn new(code: CauseCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), output: Vec::new() }
    }

    /// Sets the output: the last lines that are not blank, without control characters, and shortened.
    #[must_use]
    pub fn with_output(self, lines: &str) -> Self {
        let lines: Vec<_> = lines.lines().map(plain_line).filter(|line| !line.is_empty()).collect();
        let output = lines[lines.len().saturating_sub(MAX_OUTPUT_LINES)..].to_vec();
        Self { output, ..self }
    }

    /// Returns `true` if the other failure is the same, whatever the program has written.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.code == other.code && self.message == other.message
    }

    /// Redacts secrets.
    #[must_use]
    pub fn hiding(self, secrets: &SecretRedactor) -> Self {
        let message = match secrets.brief(&self.message) {
            Cow::Borrowed(_) => self.message,
            Cow::Owned(hidden) => hidden,
        };
        let output = self.output.iter().map(|line| secrets.hide(line).into_owned()).collect();
        Self { code: self.code, message, output }
    }

    /// Returns the lines to show: the message, then the output with `| ` before each line.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let output = self.output.iter().map(|line| format!("| {line}"));
        std::iter::once(self.message.clone()).chain(output)
    }
}

/// Writes the lines in one.
impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().collect::<Vec<_>>().join(" "))
    }
}

/// A failure of which only the message is known.
impl From<String> for FailureCause {
    fn from(message: String) -> Self {
        Self::new(CauseCode::Other, message)
    }
}

/// A failure of which only the message is known.
impl From<&str> for FailureCause {
    fn from(message: &str) -> Self {
        Self::new(CauseCode::Other, message)
    }
}

/// Returns a line without escape sequences of terminals and other control characters, shortened.
fn plain_line(line: &str) -> String {
    let (mut plain, mut chars) = (String::new(), line.trim_end().chars().peekable());
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                // The final byte of a control sequence is between `@` and `~` (ECMA-48, section 5.4).
                let _ends = chars.by_ref().find(|char| ('@'..='~').contains(char));
            }
            // A progress bar overwrites its line.
            '\r' => plain.clear(),
            char if char.is_control() => plain.push(' '),
            char => plain.push(char),
        }
    }
    shortened(plain.trim()).into_owned()
}

/// Returns a line of at most 200 characters; of a longer one the beginning and the end.
#[must_use]
pub fn shortened(line: &str) -> Cow<'_, str> {
    let offset = |chars: usize| line.char_indices().nth(chars).map(|(offset, _)| offset);
    let (Some(end), true) = (offset(MAX_LINE_LENGTH - LINE_END_LENGTH), offset(MAX_LINE_LENGTH).is_some())
    else {
        return Cow::Borrowed(line);
    };
    let last = line.char_indices().nth_back(LINE_END_LENGTH - 1).map_or(line.len(), |(offset, _)| offset);
    Cow::Owned(format!("{}…{}", &line[..end], &line[last..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_of_their_own() {
        for code in CauseCode::ALL {
            assert_eq!(CauseCode::parse(code.row().wire), code);
        }
        assert_eq!(CauseCode::parse("of a later version"), CauseCode::Other);
    }

    #[test]
    fn output_has_the_last_lines_without_control_characters() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(FailureCause::from("").with_output(text).output, expected, "{text:?}");
        };
        check("", &[]);
        check("\n \n", &[]);
        check("a\nb\n\nc\n  d\n", &["b", "c", "d"]);
        check("\u{1b}[31mred\u{1b}[0m\u{7} alert", &["red  alert"]);
        check("10 %\r20 %", &["20 %"]);
        check("\u{1b}[", &[]);
        check(&"é".repeat(MAX_LINE_LENGTH), &[&"é".repeat(MAX_LINE_LENGTH)]);
        let long = format!("{} é {}", "x".repeat(MAX_LINE_LENGTH), "y".repeat(LINE_END_LENGTH - 2));
        let ends = ["x".repeat(MAX_LINE_LENGTH - LINE_END_LENGTH), "y".repeat(LINE_END_LENGTH - 2)];
        check(&long, &[&ends.join("…é ")]);
    }

    #[test]
    fn rendering_of_a_cause() {
        let cause = FailureCause::new(CauseCode::ProcessExited, "process exited with status 1");
        let cause = cause
            .with_output("Error: no key hunter2\nbye")
            .hiding(&SecretRedactor::new(["hunter2".to_owned()]));
        insta::assert_snapshot!(cause, @"process exited with status 1 | Error: no key [REDACTED] | bye");
        insta::assert_snapshot!(cause.lines().collect::<Vec<_>>().join("\n"), @r"
        process exited with status 1
        | Error: no key [REDACTED]
        | bye
        ");
    }

    #[test]
    fn remedies_for_grpc_name_no_url() {
        for code in CauseCode::ALL {
            let remedy = code.remedy("grpc");
            assert!(!["URL", "http://", "`headers`"].iter().any(|word| remedy.contains(word)), "{remedy}");
            assert_eq!(code.remedy("mcp"), code.row().remedy);
        }
        assert!(CauseCode::Description.remedy("grpc").contains("`descriptorSet`"));
        assert!(CauseCode::Protocol.remedy("grpc").contains("`tls: true`"));
    }

    #[test]
    fn cause_of_a_status() {
        let codes = [401, 403, 404, 407, 500].map(|status| CauseCode::of_status(status).row().wire);
        assert_eq!(codes, ["unauthorized", "forbidden", "http_status", "proxy", "http_status"]);
    }
}
