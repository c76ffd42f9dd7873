//! Where the cluster is, and who we are there.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::error::OperatorError;

/// Which cluster, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cluster {
    /// The one that this process runs in, as its pod's service account. Its token is read again when it changes.
    #[default]
    Own,
    /// One that a file describes, as `kubectl` has it.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Which of its contexts; otherwise its current one.
        context: Option<String>,
    },
}

/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(5);

impl Cluster {
    /// A client of the cluster. Nothing is asked of the cluster yet. It needs a Tokio runtime, which its connections
    /// live on.
    ///
    /// # Errors
    /// When there is no such description, or it cannot be used. One that has a program say who we are is refused:
    /// the gateway starts no programs that it does not watch.
    pub async fn client(&self) -> Result<Client, OperatorError> {
        let mut config = self.config().await?;
        if config.auth_info.exec.is_some() || config.auth_info.auth_provider.is_some() {
            return Err(OperatorError::Login);
        }
        config.connect_timeout = Some(CONNECTING);
        // Who calls decides what is tried again, and for how long.
        config.default_retry = false;
        Client::try_from(config).map_err(|error| OperatorError::Cluster(error.into()))
    }

    async fn config(&self) -> Result<Config, OperatorError> {
        let Self::Kubeconfig { path, context } = self else {
            return Config::incluster().map_err(|error| OperatorError::Cluster(error.into()));
        };
        let file = Kubeconfig::read_from(path).map_err(|error| OperatorError::Cluster(error.into()))?;
        let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(file, &options).await;
        config.map_err(|error| OperatorError::Cluster(error.into()))
    }
}
