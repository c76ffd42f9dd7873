//! `toolyard openrouter-mcp`: an MCP server with the account information of OpenRouter.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use toolyard_manifest::{CredentialSource, OpenRouterSettings, SecretString};
use toolyard_sdk::ServerOptions;
use toolyard_server::openrouter;

use crate::BadInput;
use crate::duration::parse_duration;
use crate::log::LogFormatArg;

/// Serve read-only account information of OpenRouter over MCP
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard openrouter-mcp                                         over stdio, with $OPENROUTER_API_KEY
  toolyard openrouter-mcp --key-file key --listen 127.0.0.1:8090  as a service

The tools are get_credits, get_api_key_info, list_models, list_api_keys, get_api_key and get_generation. Credits
and keys of the account need a management key. A gateway has the same tools with `builtins.openRouter`.
The variables OpenRouter__ApiKey and OpenRouter__BaseUrl replace unset OPENROUTER_API_KEY and OPENROUTER_BASE_URL.")]
pub(crate) struct OpenRouterMcpArgs {
    /// Address to serve MCP on over HTTP, at /mcp, with /health [default: standard input and output]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Listen on an address that other machines can reach: all of them can then read the account
    #[arg(long, requires = "listen")]
    allow_unauthenticated: bool,

    /// Accepted value of the `Host` header, besides the address; repeatable
    #[arg(long, value_name = "HOST", requires = "listen")]
    allowed_host: Vec<String>,

    /// File with the API key, read at each call [default: $OPENROUTER_API_KEY]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Base URL of the API [default: $OPENROUTER_BASE_URL, or that of OpenRouter]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// Time limit of a request to OpenRouter
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s")]
    timeout: Duration,

    /// Log format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormatArg>,
}

pub(crate) async fn run(args: OpenRouterMcpArgs) -> anyhow::Result<ExitCode> {
    let server = openrouter::mcp_server(&args.settings()?)?.options(ServerOptions {
        allow_unauthenticated: args.allow_unauthenticated,
        allowed_hosts: args.allowed_host.clone(),
        ..ServerOptions::default()
    });
    match args.listen {
        None => server.serve_stdio().await?,
        Some(address) if !address.ip().is_loopback() && !args.allow_unauthenticated => {
            return Err(BadInput(format!(
                "other machines can reach {address}, and callers need no key: listen on a loopback address, or permit it \
                 by --allow-unauthenticated"
            ))
            .into());
        }
        Some(address) => server.serve_http(address).await?,
    }
    Ok(ExitCode::SUCCESS)
}

impl OpenRouterMcpArgs {
    fn settings(&self) -> anyhow::Result<OpenRouterSettings> {
        let settings = OpenRouterSettings::default();
        let given =
            self.base_url.clone().or_else(|| variable(["OPENROUTER_BASE_URL", "OpenRouter__BaseUrl"]));
        let base_url = match given {
            Some(url) => OpenRouterSettings::parse_base_url(&url)
                .map_err(|invalid| BadInput(format!("invalid base URL of OpenRouter: {invalid}")))?,
            None => settings.base_url.clone(),
        };
        let api_key = Some(self.api_key()?);
        Ok(OpenRouterSettings { base_url, api_key, timeout: self.timeout, ..settings })
    }

    fn api_key(&self) -> anyhow::Result<CredentialSource> {
        if let Some(file) = &self.key_file {
            // Later calls read it again; a wrong path is reported at once.
            toolyard_core::file::ensure_regular(file)
                .and_then(|()| std::fs::File::open(file))
                .with_context(|| format!("cannot read the API key in {}", file.display()))?;
            return Ok(CredentialSource::File(file.clone()));
        }
        let key = variable(["OPENROUTER_API_KEY", "OpenRouter__ApiKey"]).ok_or_else(|| {
            BadInput(
                "no API key of OpenRouter: set OPENROUTER_API_KEY, or name its file by --key-file".to_owned(),
            )
        })?;
        Ok(CredentialSource::Value(SecretString::new(key.trim())))
    }
}

/// Returns the first of these environment variables that is set and not empty.
fn variable(names: [&str; 2]) -> Option<String> {
    names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
}
