//! MCP servers in Rust: typed functions become tools, prompts and resources, and are served in every revision of the
//! Model Context Protocol, on every transport.
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
//! The schema that clients see comes from `ReverseArgs`: names from its fields, descriptions from its doc comments,
//! and what is required from its types. Arguments are checked against it before the handler runs. Beside this crate it
//! takes `schemars` 1, `serde` with `derive`, and `tokio` with `macros` and `rt-multi-thread`.
//!
//! - [`Server`] is where everything begins; [`ToolHandler`] says what a handler may look like, and [`IntoReply`] what
//!   it may return;
//! - [`Context`] is the way back to the client while a handler runs: progress, log, questions, other tools;
//! - [`Tool`], [`Content`], [`Reply`] say more than a name and a text can;
//! - [`ServerHandle`] changes what is offered while the server serves;
//! - [`client`] is the other side: a typed client of any MCP server.
//!
//! # Which transport
//!
//! | | for |
//! | --- | --- |
//! | [`Server::serve_stdio`] | a program that a client starts, such as Claude Desktop or an editor: one client, no network |
//! | [`Server::serve_http`] | a service: streamable HTTP on `/mcp`, and `/sse` for clients of 2024-11-05, until SIGTERM or Ctrl-C |
//! | [`Server::listen`] | the same inside of a program that does other things, too, and in tests: port 0, and [`HttpServer::stop`] |
//! | [`Server::into_router`] | the same as routes of an `axum` application |
//! | [`Server::serve`] | any pair of streams: a socket, a pipe in a test |
//! | [`Server::into_backend`] | a handler of a Toolyard gateway in the same process, without any protocol in between |
//!
//! Every transport speaks every revision from 2024-11-05 to 2026-07-28; each client gets the one that it asks for. HTTP
//! listens on this machine only, unless [`ServerOptions::allow_unauthenticated`] says that something in front of the
//! server asks callers who they are.
//!
//! # Errors
//!
//! There are three kinds, and each has its place:
//!
//! - *The tool failed.* The handler returns `Err`, of any error type, and the model reads what the error says, in a
//!   result with `isError`. See [`ToolFailure`]: `?` makes one of every error that is `Send + Sync + 'static`, of a
//!   `String` or `&str`, of `Box<dyn Error + Send + Sync>`, and of `anyhow::Error`. Arguments that do not fit are
//!   answered in the same way, with the name of the field, and the handler does not run.
//! - *The request is wrong.* An unknown name, or what a handler returns as [`ToolFailure::protocol`], is a JSON-RPC
//!   error, which is for the client. So is a panic, which fails its own call and no other.
//! - *The server is wrong.* A name that is empty or taken, or a schema that is not one of an object, is a
//!   [`RegisterError`] at once, before any client can stumble over it.
//!
//! # Cancellation
//!
//! A call ends early when its client withdraws it or goes away, or when [`ServerOptions::timeout`] is over. The future
//! of an `async` handler is dropped then, at the `.await` where it stands, and with it everything that it owns. A
//! handler that is a plain function runs on a thread of its own and cannot be stopped: if it runs for long, it should
//! look at [`Context::is_cancelled`]. Nobody reads its result, but the process waits for it when it exits.
//!
//! # Testing
//!
//! Handlers are plain functions: call them. To test the whole server, serve one end of a [`tokio::io::duplex`] with
//! [`Server::serve`], or [`Server::listen`] on port 0 and talk to it with [`client`].
//!
//! # If you come from gomcp
//!
//! | gomcp | here | what is different |
//! | --- | --- | --- |
//! | `server.NewServer(name, ServerOptions{})` | [`Server::new`], [`Server::options`] | the version that clients see is the one you give |
//! | `server.AddTool(srv, name, description, handler)` | [`Server::tool`] | arguments are checked against the schema first: a number that is missing is an error that names it, not 0 |
//! | `srv.RegisterTool(protocol.Tool{…}, handler)` | [`Server::register_tool`], [`ServerHandle::add_tool`] | any handler fits; one that takes a [`ToolCall`] reads its arguments by itself |
//! | `json.Unmarshal(call.Arguments, &args)` | [`ToolCall::arguments`] | |
//! | `schema.FromStruct(Args{})` | [`schema_of::<Args>()`](schema_of) | nested types and the items of lists are described, too |
//! | `json:"name" description:"…" required:"true"` | serde's attributes, doc comments, `Option` | what is not an `Option` and has no default is required |
//! | `server.Text(s)` | a `String`, or [`Content::text`] | images, audio, resources and structured content as well |
//! | `return nil, err` | `Err(error)` | the text is the error's own, without `Error:` in front |
//! | `protocol.ToolResult{IsError: true, …}` | [`Reply::error`], [`ToolFailure`] | |
//! | `server.ServeStdio(srv)` | [`Server::serve_stdio`] | the end of the input is a clean stop |
//! | `server.ServeSSE(srv, addr, …)` | [`Server::serve_http`] | `/sse` and `/message`, beside `/mcp` |
//! | `tools/list` | nothing to do | in the order of registration, always |
//! | `notifications/tools/list_changed` | [`ServerHandle`] | sent by itself with each change, in the way of each revision |
//!
//! Registering the same name twice is an error, as it was before gomcp 1.2. An unknown tool is a JSON-RPC error with
//! code -32602, as the specification says.
//!
//! # Where it runs
//!
//! On Unix: that signals end processes there is a part of how servers are served. The oldest Rust that this crate builds
//! with is the `rust-version` in its `Cargo.toml`.

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
mod options;
mod prompt;
mod register;
mod reply;
mod resource;
mod roots;
mod rounds;
mod sample;
mod schema;
mod serve;
mod server;
mod setters;
mod streams;
mod tool;

pub use completion::{Completer, Completion, CompletionRequest, IntoCompletion};
pub use content::{Annotations, Content, ResourceLink, Role};
pub use context::{CallError, CallResult, Context};
pub use elicit::{Elicit, Elicited};
pub use error::{Error, RegisterError, Result};
pub use failure::ToolFailure;
pub use handle::ServerHandle;
pub use handler::ToolHandler;
pub use icon::{Icon, Theme};
pub use options::ServerOptions;
pub use prompt::{IntoPrompt, Prompt, PromptArgument, PromptHandler, PromptMessage, PromptReply};
pub use reply::{IntoReply, Json, Reply};
pub use resource::{
    Cache, CacheScope, IntoResource, NotFound, Resource, ResourceContents, ResourceHandler, ResourceReply,
    ResourceTemplate, TemplateHandler, Uri,
};
pub use roots::{Root, RootsRequest};
pub use rounds::{BadAnswer, InputRequired, Question};
pub use sample::{Sample, SampleRequest, ToolChoice, ToolUse};
pub use schema::schema_of;
pub use serve::HttpServer;
pub use server::Server;
pub use tool::{TaskSupport, Tool, ToolAnnotations, ToolCall};

/// The crate that [`Server::into_router`] makes routes of, in the version that fits.
pub use axum;
/// The crate that schemas come from, in the version that fits.
pub use schemars;
/// What a tool's argument types derive beside [`serde::Deserialize`].
pub use schemars::JsonSchema;
/// Why a client did not answer what it was asked.
pub use toolyard_core::AskError;
/// What a server becomes in a gateway: see [`Server::into_backend`].
pub use toolyard_core::Backend;
/// How severe a line of log is.
pub use toolyard_core::LogLevel;
/// Whom a client acts for: see [`Context::principal`].
pub use toolyard_mcp::server::Principal;

/// What stands behind the handlers' traits. The compiler names it when a function is no handler; nobody else has to.
pub mod handlers {
    pub use crate::completion::{CompleterParameters, CompleterReturned};
    pub use crate::function::{Async, Blocking, FirstParameter, Function};
    pub use crate::handler::{Returned, ToolArguments, ToolParameters};
    pub use crate::prompt::{PromptArguments, PromptParameters, PromptReturned};
    pub use crate::resource::{
        ResourceParameters, ResourceReturned, TemplateParameters, TemplateVariables, Variables,
    };
}

/// The nouns of the gateway that come to the surface here: calls and results before they are typed.
pub mod raw {
    pub use toolyard_core::{Call, Code, Json, JsonError, Object, Outcome, Output, ToolError};
}
