//! What all pods of scripts have in common.

use std::time::Duration;

use crate::error::OperatorError;

/// What all pods of scripts have in common, and how many there may be. Quantities are written as Kubernetes has them
/// (`500m`, `256Mi`); whether they make sense is the cluster's to say, see
/// [`PodRunner::check`](crate::PodRunner::check).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodOptions {
    /// Where the pods are. Nothing else should be there: its policies and quota are made for scripts.
    pub namespace: String,
    /// What the names of pods begin with, and the value of their label `app`: lower-case letters, digits and hyphens,
    /// 21 at most.
    pub prefix: String,
    /// The label that has the id of the call, with what is no letter, digit, `.`, `_` or `-` of it as `-`.
    pub call_label: String,
    /// Whose pods these are, a value of the label `toolyard.dev/gateway`. Gateways that share a name tidy up after
    /// each other.
    pub gateway: String,
    /// The image, which has Python 3 as `python`, with `ctypes`, and `pip` where packages are wanted.
    pub image: String,
    /// The name of the secret that the image is pulled with, which is in the same namespace.
    pub image_pull_secret: Option<String>,
    /// The class of the runtime, such as `gvisor`; otherwise the cluster's own.
    pub runtime_class: Option<String>,
    /// How much processor time a pod may take.
    pub cpu: String,
    /// How much memory a pod may take. What takes more is killed.
    pub memory: String,
    /// How large `/tmp` may become, the only folder that a script may write to.
    pub scratch: String,
    /// How large the packages of a script may be.
    pub packages: String,
    /// How much of its node's disk a pod may use: `/tmp`, packages and output together.
    pub disk: String,
    /// Whether scripts may use the network. Otherwise they can open no socket, whatever the cluster's policies say.
    pub allow_network: bool,
    /// Where pip finds packages, as its option `--index-url`; otherwise where it looks by itself. It stands in pods,
    /// which is no place for a password.
    pub package_index: Option<String>,
    /// How much longer a pod may take with packages than its script may.
    pub install_time: Duration,
    /// How much longer a pod may take than its script may, for its image. Nothing by default: the time of a script is
    /// that of its pod.
    pub start_time: Duration,
    /// How many scripts may run at once, 1000 at most. One more is refused.
    pub concurrent: usize,
    /// How many bytes of a script's output are kept, the first ones.
    pub output_bytes: usize,
    /// How long after its last moment a pod is deleted that nobody has deleted.
    pub orphaned_after: Duration,
}

impl Default for PodOptions {
    fn default() -> Self {
        Self {
            namespace: "rockbot-scripts".to_owned(),
            prefix: "rockbot-script".to_owned(),
            call_label: "rockbot.dev/tool-call-id".to_owned(),
            gateway: "toolyard".to_owned(),
            image: "python:3.12-slim".to_owned(),
            image_pull_secret: None,
            runtime_class: None,
            cpu: "500m".to_owned(),
            memory: "256Mi".to_owned(),
            scratch: "64Mi".to_owned(),
            packages: "512Mi".to_owned(),
            disk: "1Gi".to_owned(),
            allow_network: false,
            package_index: None,
            install_time: Duration::from_secs(300),
            start_time: Duration::ZERO,
            concurrent: 8,
            output_bytes: 1024 * 1024,
            orphaned_after: Duration::from_secs(60),
        }
    }
}

/// A name of 63 has a part of the call's id (9) and a number (33) behind the prefix.
const LONGEST_PREFIX: usize = 21;

/// More would be too much for one namespace.
const MOST_SCRIPTS: usize = 1000;

impl PodOptions {
    /// What the names of pods are made of.
    ///
    /// # Errors
    /// When no name can be made of it, or no script could ever run.
    pub(crate) fn check(&self) -> Result<(), OperatorError> {
        let is_name = |text: &str| {
            let is_fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            text.bytes().all(is_fine) && text.starts_with(|c: char| c.is_ascii_lowercase())
        };
        let refuse = |what: String| Err(OperatorError::Option(what));
        if !is_name(&self.prefix) || self.prefix.len() > LONGEST_PREFIX || self.prefix.ends_with('-') {
            let prefix = &self.prefix;
            return refuse(format!(
                "The prefix of pods is at most {LONGEST_PREFIX} lower-case letters, digits and hyphens: {prefix}"
            ));
        }
        if !(1..=MOST_SCRIPTS).contains(&self.concurrent) {
            return refuse(format!("Scripts that run at once are between 1 and {MOST_SCRIPTS}"));
        }
        if self.output_bytes == 0 {
            return refuse("No script could say something".to_owned());
        }
        Ok(())
    }

    /// How much longer a pod may take than its script.
    pub(crate) fn allowance(&self, packages: &[String]) -> Duration {
        let install = if packages.is_empty() { Duration::ZERO } else { self.install_time };
        self.start_time.saturating_add(install)
    }
}
