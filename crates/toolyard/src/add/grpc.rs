//! `toolyard add grpc`: adds a gRPC server.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use toolyard_manifest::HandlerName;

use super::mcp::{name_of_url, note_literals};
use super::{AddTarget, add_handler, parse_pair};
use crate::BadInput;
use crate::output::OutputFormat;

/// Add a gRPC server, whose methods are tools
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add grpc orders.example.com:443 --tls
  toolyard add grpc localhost:50051 --service 'shop.v1.*' --method 'Get*'
  toolyard add grpc localhost:2379 --name etcd --descriptor-set etcd.binpb
  toolyard add grpc orders.example.com:443 --tls --metadata 'authorization: Bearer ${TOKEN}'

The methods are known by server reflection, by the Omnia tool protocol, or from a descriptor set, which
`protoc --include_imports --include_source_info --descriptor_set_out` writes. docs/grpc.md has the details.
Shows the change and asks for confirmation.")]
pub(super) struct AddGrpcArgs {
    /// Host and port of the server
    #[arg(value_name = "HOST:PORT")]
    endpoint: String,

    /// Name of the handler (default: derived from the host)
    #[arg(long, value_parser = HandlerName::parse)]
    name: Option<HandlerName>,

    /// Encrypt the connection
    #[arg(long)]
    tls: bool,

    /// Certificate authorities of the server
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca: Option<String>,

    /// File with a descriptor set, instead of server reflection
    #[arg(long, value_name = "FILE")]
    descriptor_set: Option<String>,

    /// Services whose methods become tools: a full name or a pattern; repeatable
    #[arg(long, value_name = "PATTERN")]
    service: Vec<String>,

    /// Methods that become tools: a name or a pattern; repeatable
    #[arg(long, value_name = "PATTERN")]
    method: Vec<String>,

    /// Metadata of every request; repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    metadata: Vec<String>,

    #[command(flatten)]
    target: AddTarget,
}

pub(super) fn run(args: &AddGrpcArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let config = args.config()?;
    let default_name = name_of_url(&args.endpoint);
    add_handler(
        &args.target,
        args.name.as_ref(),
        &default_name,
        format,
        |name| json!({"name": name, "type": "grpc", "grpcConfig": config}),
    )
}

impl AddGrpcArgs {
    fn config(&self) -> Result<Value, BadInput> {
        let mut config = json!({"endpoint": self.endpoint});
        if self.tls {
            config["tls"] = json!(true);
        }
        if let Some(file) = &self.ca {
            config["tlsCAPath"] = json!(file);
        }
        if let Some(file) = &self.descriptor_set {
            config["descriptorSet"] = json!(file);
        }
        let mut filter = Map::new();
        for (name, patterns) in [("services", &self.service), ("methods", &self.method)] {
            if !patterns.is_empty() {
                filter.insert(name.to_owned(), json!(patterns));
            }
        }
        if !filter.is_empty() {
            config["filter"] = filter.into();
        }
        let mut metadata = Map::new();
        for pair in &self.metadata {
            let (name, value) = parse_pair(pair, ':')
                .ok_or_else(|| BadInput(format!("invalid metadata: expected `NAME: VALUE`, got {pair:?}")))?;
            metadata.insert(name, value.into());
        }
        if !metadata.is_empty() {
            note_literals(&metadata);
            config["metadata"] = metadata.into();
        }
        Ok(config)
    }
}
