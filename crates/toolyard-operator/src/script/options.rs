//! Options of script pods.

use std::time::Duration;

use crate::error::OperatorError;

/// Options of script pods. Quantities are in the notation of Kubernetes (`500m`, `256Mi`); the cluster validates them,
/// see [`PodRunner::check`](crate::PodRunner::check).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodOptions {
    /// Namespace of the pods, reserved for them: its policies and quota are made for scripts.
    pub namespace: String,
    /// Prefix of pod names, and value of their label `app`: lower-case letters, digits and hyphens, at most 21.
    pub prefix: String,
    /// Label with the id of the call. Characters other than letters, digits, `.`, `_` and `-` become `-`.
    pub call_label: String,
    /// Name of the gateway, a value of the label `toolyard.dev/gateway`. Gateways with the same name clean up each
    /// other's pods.
    pub gateway: String,
    /// Image with Python 3 as `python`, with `ctypes`, and with `pip` if packages are used.
    pub image: String,
    /// Name of the image pull secret in the same namespace.
    pub image_pull_secret: Option<String>,
    /// Runtime class, such as `gvisor`. Default: that of the cluster.
    pub runtime_class: Option<String>,
    /// CPU limit of a pod.
    pub cpu: String,
    /// Memory limit of a pod. A container that exceeds it is killed.
    pub memory: String,
    /// Maximum size of `/tmp`, the only writable folder of a script.
    pub scratch: String,
    /// Maximum size of the packages of a script.
    pub packages: String,
    /// Ephemeral storage limit of a pod: `/tmp`, packages and output together.
    pub disk: String,
    /// True if scripts may use the network. Otherwise they cannot open sockets, independent of network policies.
    pub allow_network: bool,
    /// Package index, as pip's option `--index-url`. Default: that of pip. It is visible in pods, so it must not
    /// contain a password.
    pub package_index: Option<String>,
    /// True if packages without a wheel may be built, which runs their code in the pod.
    pub build_from_source: bool,
    /// Additional time limit of a pod for the installation of packages.
    pub install_time: Duration,
    /// Additional time limit of a pod for its image. Default: zero, so that the time limit of a script is that of its
    /// pod.
    pub start_time: Duration,
    /// Maximum number of concurrent scripts, at most 1000. More are refused.
    pub concurrent: usize,
    /// Maximum length of a script's output, in bytes: the beginning.
    pub output_bytes: usize,
    /// Time after its latest end at which an undeleted pod counts as orphaned.
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
            build_from_source: false,
            install_time: Duration::from_secs(300),
            start_time: Duration::ZERO,
            concurrent: 8,
            output_bytes: 1024 * 1024,
            orphaned_after: Duration::from_secs(60),
        }
    }
}

/// Maximum length of the prefix: a name of 63 characters also has a part of the call's id (9) and a number (33).
const MAX_PREFIX_LENGTH: usize = 21;

/// Maximum number of concurrent scripts in one namespace.
const MAX_SCRIPTS: usize = 1000;

impl PodOptions {
    /// Checks the options that determine pod names, and the limits.
    ///
    /// # Errors
    /// If no valid name can be built, or no script could run.
    pub(crate) fn check(&self) -> Result<(), OperatorError> {
        let is_name = |text: &str| {
            let is_fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            text.bytes().all(is_fine) && text.starts_with(|c: char| c.is_ascii_lowercase())
        };
        let refuse = |what: String| Err(OperatorError::Option(what));
        if !is_name(&self.prefix) || self.prefix.len() > MAX_PREFIX_LENGTH || self.prefix.ends_with('-') {
            let prefix = &self.prefix;
            return refuse(format!(
                "Invalid pod prefix {prefix}: at most {MAX_PREFIX_LENGTH} lower-case letters, digits and hyphens"
            ));
        }
        if !(1..=MAX_SCRIPTS).contains(&self.concurrent) {
            return refuse(format!("The number of concurrent scripts must be between 1 and {MAX_SCRIPTS}"));
        }
        if self.output_bytes == 0 {
            return refuse("The output limit must not be zero".to_owned());
        }
        Ok(())
    }

    /// Additional time limit of a pod, beyond that of its script.
    pub(crate) fn allowance(&self, packages: &[String]) -> Duration {
        let install = if packages.is_empty() { Duration::ZERO } else { self.install_time };
        self.start_time.saturating_add(install)
    }
}
