//! `toolyard add mcp`: adds an MCP server.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use toolyard_manifest::HandlerName;

use super::{AddTarget, add_handler, parse_pair};
use crate::BadInput;
use crate::output::{OutputFormat, note};

/// Add an MCP server, by its command or its URL
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add mcp -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  toolyard add mcp --name github --env GITHUB_TOKEN -- docker run -i --rm ghcr.io/github/github-mcp-server
  toolyard add mcp https://mcp.example.com/mcp --header 'Authorization: Bearer ${MY_TOKEN}'

Shows the change and asks for confirmation. Everything else in the manifest is preserved, including comments.
`${NAME}` refers to an environment variable of the gateway and `${file:PATH}` to a file, so that secrets stay out of the
manifest.")]
pub(super) struct AddMcpArgs {
    /// URL of a running server
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    /// Name of the handler (default: derived from the command or the URL)
    #[arg(long, value_parser = HandlerName::parse)]
    name: Option<HandlerName>,

    /// Environment variable of the server; without a value, that of the gateway is passed on; repeatable
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "url")]
    env: Vec<String>,

    /// Working directory of the server
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<String>,

    /// Header of every request; repeatable
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "command")]
    header: Vec<String>,

    /// Transport to try first
    #[arg(long, value_enum, conflicts_with = "command")]
    transport: Option<TransportArg>,

    #[command(flatten)]
    target: AddTarget,
}

#[derive(Clone, Copy, ValueEnum)]
enum TransportArg {
    /// Streamable HTTP
    #[value(alias = "http")]
    StreamableHttp,
    /// HTTP+SSE, the older transport
    Sse,
}

pub(super) fn run(args: &AddMcpArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let (config, default_name) = match &args.url {
        Some(url) => (args.remote_config(url)?, name_of_url(url)),
        None => (args.program_config()?, name_of_command(&args.command)),
    };
    add_handler(
        &args.target,
        args.name.as_ref(),
        &default_name,
        format,
        |name| json!({"name": name, "type": "mcp", "mcpConfig": config}),
    )
}

impl AddMcpArgs {
    fn remote_config(&self, url: &str) -> Result<Value, BadInput> {
        let is_sse = matches!(self.transport, Some(TransportArg::Sse))
            || self.transport.is_none() && url.trim_end_matches('/').ends_with("/sse");
        let mut config =
            json!({"transport": if is_sse { "sse" } else { "streamable-http" }, "endpoint": url});
        let mut headers = Map::new();
        for header in &self.header {
            let (name, value) = parse_pair(header, ':')
                .ok_or_else(|| BadInput(format!("invalid header: expected `NAME: VALUE`, got {header:?}")))?;
            headers.insert(name, value.into());
        }
        if !headers.is_empty() {
            note_literals(&headers);
            config["headers"] = headers.into();
        }
        Ok(config)
    }

    fn program_config(&self) -> Result<Value, BadInput> {
        let Some((command, args)) = self.command.split_first() else {
            return Err(BadInput("name the URL of the server, or its command after `--`".to_owned()));
        };
        let mut config = json!({"transport": "stdio", "command": command});
        if !args.is_empty() {
            config["args"] = json!(args);
        }
        if let Some(folder) = &self.cwd {
            config["workDir"] = json!(folder);
        }
        let variable =
            |text: &String| parse_pair(text, '=').unwrap_or_else(|| (text.clone(), format!("${{{text}}}")));
        let env: Map<_, _> =
            self.env.iter().map(variable).map(|(name, value)| (name, value.into())).collect();
        if !env.is_empty() {
            note_literals(&env);
            config["env"] = env.into();
        }
        Ok(config)
    }
}

/// Parts of names whose values are likely to be secret.
const SECRET_WORDS: &[&str] = &["auth", "cookie", "cred", "key", "pass", "secret", "token"];

/// Prints a note about values that are likely to be secret and are written into the manifest.
pub(super) fn note_literals(values: &Map<String, Value>) {
    for (name, value) in values {
        let lower = name.to_ascii_lowercase();
        let is_literal = value.as_str().is_some_and(|value| !value.contains("${"));
        if is_literal && SECRET_WORDS.iter().any(|word| lower.contains(word)) {
            note(&format!(
                "the value of {name} is written into the manifest; write `${{NAME}}` to refer to a variable"
            ));
        }
    }
}

/// Launchers, whose first plain argument names the server.
const LAUNCHERS: &[&str] = &[
    "npx", "npm", "uvx", "uv", "pipx", "docker", "podman", "node", "python", "python3", "bunx", "deno", "go",
];

/// Words between a launcher and the name of a server.
const LAUNCHER_WORDS: &[&str] = &["run", "exec", "tool", "x"];

/// Derives a name from a command: `npx -y @scope/server-files@1.2 /tmp` is `server-files`.
fn name_of_command(command: &[String]) -> String {
    let Some((program, args)) = command.split_first() else { return String::new() };
    let program = last_part(program, '/');
    let is_plain = |arg: &&String| !arg.starts_with('-') && !LAUNCHER_WORDS.contains(&arg.as_str());
    let package = args.iter().find(is_plain).filter(|_| LAUNCHERS.contains(&program));
    let name = last_part(package.map_or(program, |package| package.trim_end_matches('/')), '/');
    let name = name.split(['@', ':', '=']).find(|part| !part.is_empty()).unwrap_or(program);
    let stem = name.rsplit_once('.').filter(|(stem, extension)| !stem.is_empty() && extension.len() <= 3);
    stem.map_or(name, |(stem, _)| stem).to_owned()
}

fn last_part(text: &str, separator: char) -> &str {
    text.rsplit(separator).next().unwrap_or(text)
}

/// Derives a name from a URL: `https://mcp.deepwiki.com/mcp` is `deepwiki`.
pub(super) fn name_of_url(url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next();
    let host = authority
        .unwrap_or_default()
        .rsplit_once(':')
        .map_or(authority.unwrap_or_default(), |(host, _)| host);
    if host.parse::<std::net::IpAddr>().is_ok() || !host.contains('.') {
        return host.to_owned();
    }
    let labels: Vec<_> = host.split('.').collect();
    let named = labels[..labels.len() - 1].iter().filter(|label| !matches!(**label, "mcp" | "api" | "www"));
    let name = named.copied().collect::<Vec<_>>().join("-");
    if name.is_empty() { host.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_commands() {
        let check = |command: &str, expected: &str| {
            let command: Vec<_> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of_command(&command), expected, "{command:?}");
        };
        check("npx -y @modelcontextprotocol/server-filesystem /tmp", "server-filesystem");
        check("npx -y mcp-server@1.2.0", "mcp-server");
        check("uvx mcp-server-time", "mcp-server-time");
        check("uv tool run mcp-server-git==1.0", "mcp-server-git");
        check("docker run -i --rm ghcr.io/github/github-mcp-server:v1", "github-mcp-server");
        check("python3 servers/weather.py", "weather");
        check("/opt/bin/my-server --port 5", "my-server");
        check("npx", "npx");
    }

    #[test]
    fn names_are_derived_from_urls() {
        let check = |url: &str, expected: &str| assert_eq!(name_of_url(url), expected, "{url}");
        check("https://mcp.deepwiki.com/mcp", "deepwiki");
        check("https://api.tools.example.com:8443/mcp?x=1", "tools-example");
        check("http://localhost:3000/mcp", "localhost");
        check("http://127.0.0.1:3000", "127.0.0.1");
        check("${URL}", "${URL}");
    }
}
