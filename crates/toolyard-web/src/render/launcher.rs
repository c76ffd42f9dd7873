//! Starts browsers.

use std::any::Any;
use std::error::Error;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// Starts browsers, each without a network and within limits.
pub trait BrowserLauncher: Send + Sync {
    /// Starts a browser that speaks the DevTools protocol on pipes.
    fn start(&self) -> BoxFuture<'_, Result<BrowserProcess, LaunchError>>;
}

/// A running browser.
pub struct BrowserProcess {
    /// Commands to the browser.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Responses and events of the browser.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Ends the browser and all its processes when it is dropped.
    pub guard: Box<dyn Any + Send>,
}

/// The reason why no browser starts.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a browser")]
pub struct LaunchError(#[source] pub Box<dyn Error + Send + Sync>);
