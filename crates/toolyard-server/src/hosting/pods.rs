//! Scripts in pods of a cluster, where this build knows of Kubernetes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolyard_core::{Code, Runner, Script, ScriptOutcome, ToolError};
use toolyard_manifest::Scripts;

/// What runs scripts in pods.
#[cfg(feature = "kubernetes")]
pub(super) fn runner(scripts: &Scripts) -> Arc<dyn Runner> {
    Arc::new(cluster::Pods::new(scripts))
}

/// Who would run scripts in pods says that it cannot.
#[cfg(not(feature = "kubernetes"))]
pub(super) fn runner(_scripts: &Scripts) -> Arc<dyn Runner> {
    Arc::new(NotBuilt)
}

/// This build cannot.
#[cfg(not(feature = "kubernetes"))]
struct NotBuilt;

#[cfg(not(feature = "kubernetes"))]
impl Runner for NotBuilt {
    fn run(&self, _script: Script) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        let why = "Scripts are to run in Kubernetes, which this build does not know: it takes the feature `kubernetes`";
        Box::pin(std::future::ready(Err(ToolError::new(Code::Unavailable, why).unsent())))
    }
}

#[cfg(feature = "kubernetes")]
mod cluster {
    use tokio::sync::OnceCell;
    use toolyard_manifest::PodSettings;
    use toolyard_operator::{Cluster, PodOptions, PodRunner};

    use super::{Arc, BoxFuture, Code, Runner, Script, ScriptOutcome, Scripts, ToolError};

    /// The cluster is looked for when there is a first script.
    pub(super) struct Pods {
        options: PodOptions,
        runner: OnceCell<Arc<PodRunner>>,
    }

    impl Pods {
        pub(super) fn new(scripts: &Scripts) -> Self {
            Self { options: options(scripts), runner: OnceCell::new() }
        }

        async fn connect(&self) -> Result<Arc<PodRunner>, ToolError> {
            let unavailable = |error: toolyard_operator::OperatorError| {
                ToolError::new(Code::Unavailable, "Scripts cannot run: there is no Kubernetes to be reached")
                    .caused_by(error)
                    .unsent()
            };
            let client = cluster().client().await.map_err(unavailable)?;
            PodRunner::new(client, self.options.clone()).map(Arc::new).map_err(unavailable)
        }
    }

    /// The one that `KUBECONFIG` names, else that of the pod that this is.
    fn cluster() -> Cluster {
        match std::env::var_os("KUBECONFIG") {
            Some(path) if !path.is_empty() => Cluster::Kubeconfig { path: path.into(), context: None },
            _ => Cluster::Own,
        }
    }

    fn options(scripts: &Scripts) -> PodOptions {
        let PodSettings { namespace, image, image_pull_secret, runtime_class, package_index } =
            scripts.kubernetes.clone();
        PodOptions {
            namespace,
            image,
            image_pull_secret,
            runtime_class,
            package_index,
            cpu: format!("{}m", scripts.cpu_millis),
            memory: scripts.memory_bytes.to_string(),
            scratch: scripts.disk_bytes.to_string(),
            allow_network: scripts.network,
            concurrent: scripts.concurrent,
            output_bytes: scripts.output_bytes,
            ..PodOptions::default()
        }
    }

    impl Runner for Pods {
        fn run(&self, script: Script) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
            Box::pin(async move {
                let runner = self.runner.get_or_try_init(|| self.connect()).await?.clone();
                runner.run(script).await
            })
        }
    }
}
