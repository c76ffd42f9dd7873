//! MCP servers over the bus: a bridge has them, and others list and call their tools.
//!
//! - [`bridge`]: the process with the servers;
//! - `index`: sends agents the servers;
//! - `management`: details of servers, and servers that are added and removed;
//! - `routing`: the tool that a call is for;
//! - [`proxy`]: the side of an agent.
//!
//! ```text
//! McpToolProxy ──ToolInvokeRequest on tool.invoke.mcp, header rb-mcp-server──▶ McpBridge ──Gateway::invoke──▶ server
//!     ▲  ▲                                                                        │ │
//!     │  └── McpServersIndexed on tool.meta.mcp.{agent} ──────────────────────────┘ │
//!     └── ToolInvokeResponse or ToolError on tool.result.{agent} ───────────────────┘
//! ```

pub mod bridge;
mod index;
mod management;
pub mod proxy;
pub(crate) mod routing;

pub use bridge::{BridgeServers, McpBridge};
pub use proxy::{McpToolProxy, ServerIndex};
