//! Scripts in pods of a Kubernetes cluster.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;
use toolyard_core::{ErrorCode, PythonScript, ScriptExecutor, ScriptOutcome, ToolError};
use toolyard_manifest::{PodSettings, ScriptSettings};
use toolyard_operator::{ClusterConfig, PodOptions, PodRunner};
use toolyard_sandbox::packages::requirements::RequirementList;

/// Returns the runner of scripts in pods.
pub(super) fn runner(scripts: &ScriptSettings, build_from_source: bool) -> Arc<dyn ScriptExecutor> {
    Arc::new(LazyPodRunner::new(scripts, build_from_source))
}

/// Connects to the cluster at the first script.
struct LazyPodRunner {
    options: PodOptions,
    runner: OnceCell<Arc<PodRunner>>,
}

impl LazyPodRunner {
    fn new(scripts: &ScriptSettings, build_from_source: bool) -> Self {
        let options = PodOptions { build_from_source, ..options(scripts) };
        Self { options, runner: OnceCell::new() }
    }

    async fn connect(&self) -> Result<Arc<PodRunner>, ToolError> {
        let unavailable = |error: toolyard_operator::OperatorError| {
            ToolError::new(ErrorCode::Unavailable, "scripts cannot run: cannot connect to Kubernetes")
                .caused_by(error)
                .unsent()
        };
        let client = cluster().client().await.map_err(unavailable)?;
        PodRunner::new(client, self.options.clone()).map(Arc::new).map_err(unavailable)
    }
}

/// Returns the cluster of `KUBECONFIG`, or of the gateway's own pod.
fn cluster() -> ClusterConfig {
    match std::env::var_os("KUBECONFIG") {
        Some(path) if !path.is_empty() => ClusterConfig::Kubeconfig { path: path.into(), context: None },
        _ => ClusterConfig::InCluster,
    }
}

fn options(scripts: &ScriptSettings) -> PodOptions {
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

/// Converts a script's packages to arguments of pip: names, extras, versions and markers, by the same rules as on
/// this machine.
fn packages(requirements: &[String]) -> Result<Vec<String>, ToolError> {
    let refuse = |why: String| ToolError::new(ErrorCode::InvalidArguments, why).unsent();
    let list = RequirementList::parse(&requirements.join("\n"));
    let list = list.map_err(|error| refuse(format!("the script was not run: {error}")))?;
    match list.packages().iter().find(|package| package.has_digests()) {
        Some(package) => {
            let name = package.name();
            Err(refuse(format!("the script was not run: digests of {name} are not checked in pods")))
        }
        None => Ok(list.packages().iter().map(ToString::to_string).collect()),
    }
}

impl ScriptExecutor for LazyPodRunner {
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        Box::pin(async move {
            let script = PythonScript { packages: packages(&script.packages)?, ..script };
            let runner = self.runner.get_or_try_init(|| self.connect()).await?.clone();
            runner.run(script).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_become_pip_arguments() {
        let check = |requirements: &[&str], expected: Result<&[&str], &str>| {
            let requirements: Vec<_> = requirements.iter().map(|line| (*line).to_owned()).collect();
            let arguments = packages(&requirements).map_err(|error| error.message().to_owned());
            match (arguments, expected) {
                (Ok(arguments), Ok(expected)) => assert_eq!(arguments, expected, "{requirements:?}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{requirements:?}: {why}"),
                (arguments, _) => panic!("{requirements:?}: {arguments:?}"),
            }
        };
        check(&["Numpy >= 1", "", "a[b]; os_name == 'nt'"], Ok(&["numpy>=1", "a[b] ; os_name == 'nt'"]));
        check(&["x @ http://example.com/x.whl"], Err("not from a URL"));
        check(&["git+https://example.com/x"], Err("line 1 of the packages"));
        check(&["x==1 --no-binary=x"], Err("options are set in pip's own configuration"));
        check(&["x/y"], Err("line 1 of the packages"));
        check(&[&format!("x --hash=sha256:{}", "0".repeat(64))], Err("digests of x are not checked in pods"));
    }
}
