//! The pod of a script, as a pure function of the script and the options.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, EnvVar, LocalObjectReference, Pod, PodSecurityContext,
    PodSpec, ResourceRequirements, SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;
use toolyard_core::script::PythonScript;

use super::options::PodOptions;
use crate::error::OperatorError;

/// Name of the container of the script.
pub const SCRIPT_CONTAINER: &str = "script";
/// Name of the init container that installs packages.
pub const PACKAGES_CONTAINER: &str = "packages";

/// Label with the name of the gateway.
pub const GATEWAY_LABEL: &str = "toolyard.dev/gateway";
/// Label that network policies select pods with network access by: [`EGRESS`].
pub const NETWORK_LABEL: &str = "toolyard.dev/network";
/// Value of [`NETWORK_LABEL`] of pods that install packages, or whose script may use the network.
pub const EGRESS: &str = "egress";
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "toolyard");

const SCRATCH_PATH: &str = "/tmp";
const PACKAGES_PATH: &str = "/tmp/pypackages";
const USER: i64 = 1000;

/// Maximum length of a text: arguments and variables are limited to 128 KiB, including the name, `=` and a zero byte.
const MAX_TEXT_BYTES: usize = 128 * 1024 - "ROCKBOT_SCRIPT=".len() - 1;
const MAX_REQUIREMENT_BYTES: usize = 1000;
const MAX_PACKAGES: usize = 100;

/// Maximum lifetime of a pod.
pub(crate) const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum length of a label value and of a name.
const MAX_NAME_LENGTH: usize = 63;

/// Python program that blocks the network and executes the script.
const NETWORK_FILTER: &str = include_str!("network_filter.py");
/// Python program that runs pip without builds from source.
const PIP_WHEELS_ONLY: &str = include_str!("wheels.py");
const UNFILTERED_COMMAND: &str = r#"exec python -c "$ROCKBOT_SCRIPT""#;

/// Returns the pod of a script. `guid` identifies it: 32 hexadecimal digits.
#[must_use]
pub fn pod(script: &PythonScript, options: &PodOptions, guid: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(name(script, options, guid)),
            namespace: Some(options.namespace.clone()),
            labels: Some(labels(script, options)),
            ..ObjectMeta::default()
        },
        spec: Some(spec(script, options)),
        status: None,
    }
}

/// Time limit of a pod, from its assignment to a node.
#[must_use]
pub fn deadline(script: &PythonScript, options: &PodOptions) -> Duration {
    let deadline = script.timeout.saturating_add(options.allowance(&script.packages)).min(MAX_LIFETIME);
    Duration::from_secs(deadline.as_secs() + u64::from(deadline.subsec_nanos() > 0))
        .max(Duration::from_secs(1))
}

/// Label selector of the pods of a gateway.
pub(crate) fn selector(options: &PodOptions) -> String {
    let (key, value) = MANAGED_BY;
    format!("app={},{key}={value},{GATEWAY_LABEL}={}", options.prefix, options.gateway)
}

/// Checks that a script can be run in a pod.
///
/// # Errors
/// [`OperatorError::Unfit`], with a message for the author of the script.
pub(crate) fn check(script: &PythonScript) -> Result<(), OperatorError> {
    let unfit = |what: String| Err(OperatorError::Unfit(what));
    let input = script.input.as_deref().unwrap_or_default();
    for (what, text) in [("script", &*script.source), ("input", input)] {
        if text.len() > MAX_TEXT_BYTES {
            return unfit(format!("The {what} is longer than {MAX_TEXT_BYTES} bytes"));
        }
        if text.contains('\0') {
            return unfit(format!("The {what} has a zero character"));
        }
    }
    if script.packages.len() > MAX_PACKAGES {
        return unfit(format!("A script has at most {MAX_PACKAGES} packages"));
    }
    match script.packages.iter().find(|package| !is_requirement(package)) {
        Some(package) => unfit(format!("Invalid requirement: {}", package.escape_debug())),
        None => Ok(()),
    }
}

/// True if a text has the form of a name with versions and a marker. A leading hyphen would be an option of pip; `@`,
/// slashes and backslashes are parts of URLs and paths. The gateway has checked the full grammar before.
fn is_requirement(text: &str) -> bool {
    let is_short = text.len() <= MAX_REQUIREMENT_BYTES && !text.contains(char::is_control);
    let package = text.split_once(';').map_or(text, |(package, _)| package).trim_start();
    let has_option = text.split_whitespace().any(|word| word.starts_with('-'));
    let names_place = package.contains(['@', '/', '\\']);
    is_short
        && !has_option
        && !names_place
        && package.starts_with(|first: char| first.is_ascii_alphanumeric())
}

fn name(script: &PythonScript, options: &PodOptions, guid: &str) -> String {
    let start: String = script.call_id.chars().take(8).map(|c| c.to_ascii_lowercase()).collect();
    let start: String = start.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut name = format!("{}-{start}-{guid}", options.prefix);
    name.truncate(MAX_NAME_LENGTH);
    name.trim_end_matches('-').to_owned()
}

fn labels(script: &PythonScript, options: &PodOptions) -> BTreeMap<String, String> {
    let (managed_by, us) = MANAGED_BY;
    let network = if has_egress(script, options) { EGRESS } else { "none" };
    let labels = [
        ("app", options.prefix.clone()),
        (&options.call_label, label_value(&script.call_id)),
        (managed_by, us.to_owned()),
        (GATEWAY_LABEL, options.gateway.clone()),
        (NETWORK_LABEL, network.to_owned()),
    ];
    labels.map(|(label, value)| (label.to_owned(), value)).into()
}

const fn has_egress(script: &PythonScript, options: &PodOptions) -> bool {
    options.allow_network || !script.packages.is_empty()
}

/// Converts a text to a label value, which begins and ends with a letter or digit.
fn label_value(text: &str) -> String {
    let is_fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let value: String =
        text.chars().take(MAX_NAME_LENGTH).map(|c| if is_fine(&c) { c } else { '-' }).collect();
    value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

fn spec(script: &PythonScript, options: &PodOptions) -> PodSpec {
    let has_packages = !script.packages.is_empty();
    let secret = options.image_pull_secret.clone().map(|name| vec![LocalObjectReference { name }]);
    let mut volumes = vec![volume("scratch", &options.scratch)];
    volumes.extend(has_packages.then(|| volume(PACKAGES_CONTAINER, &options.packages)));
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        active_deadline_seconds: i64::try_from(deadline(script, options).as_secs()).ok(),
        // A deleted pod needs no time for its end.
        termination_grace_period_seconds: Some(1),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        image_pull_secrets: secret,
        runtime_class_name: options.runtime_class.clone(),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        init_containers: has_packages.then(|| vec![packages(script, options)]),
        containers: vec![runner(script, options)],
        volumes: Some(volumes),
        ..PodSpec::default()
    }
}

fn runner(script: &PythonScript, options: &PodOptions) -> Container {
    let input = script.input.as_deref().unwrap_or_default();
    let mut env = vec![
        // Unbuffered, so that the output of a killed script is complete.
        variable("PYTHONUNBUFFERED", "1"),
        variable("ROCKBOT_SCRIPT", &script.source),
        variable("ROCKBOT_INPUT", input),
        variable("TOOLYARD_INPUT", input),
    ];
    let mut mounts = Vec::new();
    if !script.packages.is_empty() {
        env.push(variable("PYTHONPATH", PACKAGES_PATH));
        mounts.push(VolumeMount { read_only: Some(true), ..mount(PACKAGES_CONTAINER, PACKAGES_PATH) });
    }
    let command: &[&str] = match options.allow_network {
        true => &["sh", "-c", UNFILTERED_COMMAND],
        false => &["python", "-I", "-c", NETWORK_FILTER],
    };
    container(SCRIPT_CONTAINER, command.iter().map(|&word| literal(word)).collect(), env, mounts, options)
}

/// The init container. It has neither the script nor its input, because package code may run there with network access.
fn packages(script: &PythonScript, options: &PodOptions) -> Container {
    let (pip, only_wheels): (&[&str], &[&str]) = match options.build_from_source {
        true => (&["python", "-m", "pip"], &[]),
        false => (&["python", "-I", "-c", PIP_WHEELS_ONLY], &["--only-binary=:all:"]),
    };
    let install = ["install", "--no-input", "--no-cache-dir", "--disable-pip-version-check"];
    let target = ["--progress-bar", "off", "--target", PACKAGES_PATH, "--"];
    let words = [pip, &install, only_wheels, &target].concat();
    let packages = script.packages.iter().map(String::as_str);
    let command = words.into_iter().chain(packages).map(literal).collect();
    let index = options.package_index.as_deref().map(|index| variable("PIP_INDEX_URL", index));
    let mounts = vec![mount(PACKAGES_CONTAINER, PACKAGES_PATH)];
    container(PACKAGES_CONTAINER, command, index.into_iter().collect(), mounts, options)
}

fn container(
    name: &str,
    command: Vec<String>,
    env: Vec<EnvVar>,
    mounts: Vec<VolumeMount>,
    options: &PodOptions,
) -> Container {
    let amounts = [("cpu", &options.cpu), ("memory", &options.memory), ("ephemeral-storage", &options.disk)];
    let amounts = amounts.map(|(of, amount)| (of.to_owned(), Quantity(amount.clone())));
    let home = [variable("HOME", SCRATCH_PATH), variable("PYTHONDONTWRITEBYTECODE", "1")];
    Container {
        name: name.to_owned(),
        image: Some(options.image.clone()),
        command: Some(command),
        env: Some(home.into_iter().chain(env).collect()),
        volume_mounts: Some([mount("scratch", SCRATCH_PATH)].into_iter().chain(mounts).collect()),
        resources: Some(ResourceRequirements {
            limits: Some(amounts.into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn volume(name: &str, size: &str) -> Volume {
    let size_limit = Some(Quantity(size.to_owned()));
    let empty_dir = Some(EmptyDirVolumeSource { size_limit, ..EmptyDirVolumeSource::default() });
    Volume { name: name.to_owned(), empty_dir, ..Volume::default() }
}

fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(literal(value)), value_from: None }
}

/// Escapes a text: Kubernetes expands `$(NAME)` in values and commands, and reduces `$$` to `$`.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests;
