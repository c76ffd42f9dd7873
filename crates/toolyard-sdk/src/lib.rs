//! MCP servers in Rust: typed functions become tools, prompts and resources, served in every revision of the Model
//! Context Protocol and on every transport.
//!
//! ```no_run
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use toolyard_sdk::{Result, Server, ToolFailure};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct ReverseArgs {
//!     /// The string to reverse
//!     input: String,
//! }
//!
//! async fn reverse(args: ReverseArgs) -> Result<String, ToolFailure> {
//!     Ok(args.input.chars().rev().collect())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     Server::new("MyToolServer", "1.0.0")
//!         .tool("reverse_string", "Reverses the input string.", reverse)?
//!         .serve_stdio()
//!         .await
//! }
//! ```
//!
//! The schema that clients see is derived from `ReverseArgs`: names from its fields, descriptions from its doc
//! comments, and required arguments from its types. Arguments are validated against it before the handler runs. Besides
//! this crate you need `schemars` 1, `serde` with `derive`, and `tokio` with `macros` and `rt-multi-thread`.
//!
//! - [`Server`] is the entry point; [`ToolHandler`] describes the parameters of a handler, and [`IntoToolReply`] its
//!   return types;
//! - [`Context`] connects a running handler to its client: progress, log, questions, other tools;
//! - [`Tool`], [`Content`] and [`ToolReply`] are for more than a name and a text;
//! - [`ServerHandle`] changes the registered items while the server serves;
//! - [`client`] is a typed client of any MCP server.
//!
//! # Transports
//!
//! | | for |
//! | --- | --- |
//! | [`Server::serve_stdio`] | a program that a client starts, such as Claude Desktop or an editor: one client, no network |
//! | [`Server::serve_http`] | a service: streamable HTTP on `/mcp`, and `/sse` for clients of 2024-11-05, until SIGTERM or Ctrl-C |
//! | [`Server::listen`] | the same inside a program that does other things too, and in tests: port 0, and [`HttpServer::stop`] |
//! | [`Server::into_router`] | the same as routes of an `axum` application |
//! | [`Server::serve`] | any pair of streams: a socket, a pipe in a test |
//! | [`Server::into_backend`] | a handler of a Toolyard gateway in the same process, without a protocol in between |
//!
//! Every transport supports every revision from 2024-11-05 to 2026-07-28; each client gets the revision that it
//! requests. HTTP listens on this machine only, unless [`ServerOptions::allow_unauthenticated`] states that something
//! in front of the server authenticates callers.
//!
//! # Errors
//!
//! There are three kinds of errors:
//!
//! - *The tool failed.* The handler returns `Err` with any error type, and the model reads the message in a result with
//!   `isError`. See [`ToolFailure`]: `?` converts every error that is `Send + Sync + 'static`, a `String` or `&str`,
//!   `Box<dyn Error + Send + Sync>`, and `anyhow::Error`. Invalid arguments are answered in the same way, with the name
//!   of the field, and the handler does not run.
//! - *The request is wrong.* An unknown name, or [`ToolFailure::protocol`] from a handler, is a JSON-RPC error for the
//!   client. So is a panic, which fails only its own call.
//! - *The server is wrong.* An empty or duplicate name, or a schema that does not describe an object, is a
//!   [`RegisterError`] at registration, before any client connects.
//!
//! # Cancellation
//!
//! A call ends early if its client cancels it or disconnects, or when [`ServerOptions::timeout`] has passed. The future
//! of an `async` handler is then dropped at its current `.await`, with everything that it owns. A handler that is a
//! plain function runs on a thread of its own and cannot be stopped: a long-running one should check
//! [`Context::is_cancelled`]. Its result is discarded, but the process waits for it on exit.
//!
//! # Testing
//!
//! Handlers are plain functions: call them. To test the whole server, serve one end of a [`tokio::io::duplex`] with
//! [`Server::serve`], or use [`Server::listen`] with port 0 and connect a [`client`].
//!
//! # Migrating from gomcp
//!
//! | gomcp | here | difference |
//! | --- | --- | --- |
//! | `server.NewServer(name, ServerOptions{})` | [`Server::new`], [`Server::options`] | clients see the version that you pass |
//! | `server.AddTool(srv, name, description, handler)` | [`Server::tool`] | arguments are validated against the schema: a missing number is an error that names it, not 0 |
//! | `srv.RegisterTool(protocol.Tool{…}, handler)` | [`Server::register_tool`], [`ServerHandle::add_tool`] | any handler fits; one that takes a [`ToolCall`] deserializes the arguments itself |
//! | `json.Unmarshal(call.Arguments, &args)` | [`ToolCall::arguments`] | |
//! | `schema.FromStruct(Args{})` | [`schema_of::<Args>()`](schema_of) | includes nested types and the items of lists |
//! | `json:"name" description:"…" required:"true"` | serde's attributes, doc comments, `Option` | a field is required unless it is an `Option` or has a default |
//! | `server.Text(s)` | a `String`, or [`Content::text`] | images, audio, resources and structured content as well |
//! | `return nil, err` | `Err(error)` | the error's own text, without the prefix `Error:` |
//! | `protocol.ToolResult{IsError: true, …}` | [`ToolReply::error`], [`ToolFailure`] | |
//! | `server.ServeStdio(srv)` | [`Server::serve_stdio`] | the end of the input is a clean stop |
//! | `server.ServeSSE(srv, addr, …)` | [`Server::serve_http`] | `/sse` and `/message`, besides `/mcp` |
//! | `tools/list` | automatic | always in the order of registration |
//! | `notifications/tools/list_changed` | [`ServerHandle`] | sent automatically on each change, in the form of each revision |
//!
//! Registering the same name twice is an error, as it was before gomcp 1.2. An unknown tool is a JSON-RPC error with
//! the code -32602, as in the specification.
//!
//! # Supported platforms
//!
//! Unix only, because stopping a server relies on signals. The minimum supported Rust version is the `rust-version` in
//! `Cargo.toml`.

mod backend;
pub mod client;
mod completion;
mod content;
mod context;
mod elicit;
mod error;
mod failure;
mod function;
mod handle;
mod handler;
mod icon;
mod input_required;
mod options;
mod prompt;
mod register;
mod reply;
mod resource;
mod roots;
mod sample;
mod schema;
mod serve;
mod server;
mod setters;
mod streams;
mod tool;

pub use completion::{Completer, CompletionReply, CompletionRequest, IntoCompletion};
pub use content::{Annotations, Content, ResourceLink, Role};
pub use context::{Context, NestedCallError, NestedCallResult};
pub use elicit::{ElicitRequest, ElicitResult};
pub use error::{Error, RegisterError, Result};
pub use failure::ToolFailure;
pub use handle::ServerHandle;
pub use handler::ToolHandler;
pub use icon::{Icon, IconTheme};
pub use input_required::{BadAnswer, ClientQuestion, InputRequired};
pub use options::ServerOptions;
pub use prompt::{IntoPrompt, Prompt, PromptArgument, PromptHandler, PromptMessage, PromptReply};
pub use reply::{IntoToolReply, Json, ToolReply};
pub use resource::{
    CachePolicy, CacheScope, IntoResource, NotFound, Resource, ResourceContents, ResourceHandler,
    ResourceReply, ResourceTemplate, ResourceUri, TemplateHandler,
};
pub use roots::{Root, RootsRequest};
pub use sample::{SampleRequest, SampleResult, ToolChoice, ToolUse};
pub use schema::schema_of;
pub use serve::HttpServer;
pub use server::Server;
pub use tool::{TaskSupport, Tool, ToolAnnotations, ToolCall};

/// The web framework of [`Server::into_router`], in the matching version.
pub use axum;
/// The crate that derives schemas, in the matching version.
pub use schemars;
/// The derive macro for argument types, besides [`serde::Deserialize`].
pub use schemars::JsonSchema;
/// The type of a server inside a gateway: see [`Server::into_backend`].
pub use toolyard_core::Backend;
/// Error of a question to the client.
pub use toolyard_core::InputRequestError;
/// The severity of a log message.
pub use toolyard_core::LogLevel;
/// The principal that a client acts for: see [`Context::principal`].
pub use toolyard_mcp::server::HttpPrincipal;

/// The traits behind the handler traits. Compiler errors name them; other code does not need them.
pub mod handlers {
    pub use crate::completion::{CompleterOutput, CompleterParameters};
    pub use crate::function::{AsyncHandler, BlockingHandler, FirstParameter, HandlerFunction};
    pub use crate::handler::{ToolArguments, ToolOutput, ToolParameters};
    pub use crate::prompt::{PromptArguments, PromptOutput, PromptParameters};
    pub use crate::resource::{
        ResourceOutput, ResourceParameters, TemplateParameters, TemplateVariables, UriVariables,
    };
}

/// Types of the gateway that appear in this API: untyped calls and results.
pub mod raw {
    pub use toolyard_core::{Call, CallOutput, ErrorCode, Json, JsonError, Object, Outcome, ToolError};
}
