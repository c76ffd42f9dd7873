//! Connection to a Kubernetes cluster.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::error::OperatorError;

/// Cluster and credentials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ClusterConfig {
    /// The cluster of this process, with its pod's service account. Renewed tokens are reloaded.
    #[default]
    InCluster,
    /// A cluster from a kubeconfig file, as for `kubectl`.
    Kubeconfig {
        /// Path of the file.
        path: PathBuf,
        /// Context in the file. Default: its current context.
        context: Option<String>,
    },
}

/// Time limit of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl ClusterConfig {
    /// Creates a client of the cluster. Sends no request yet. Requires a Tokio runtime, in which its connections live.
    ///
    /// # Errors
    /// If the configuration is missing or invalid. Credentials from a program are refused: the gateway starts no
    /// programs without a supervisor.
    pub async fn client(&self) -> Result<Client, OperatorError> {
        let mut config = self.config().await?;
        if config.auth_info.exec.is_some() || config.auth_info.auth_provider.is_some() {
            return Err(OperatorError::Login);
        }
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // Callers decide about retries and their time limits.
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
