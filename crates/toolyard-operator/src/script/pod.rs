//! The pod of a script: everything that Kubernetes is told of it, as a function of the script.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, EnvVar, LocalObjectReference, Pod, PodSecurityContext,
    PodSpec, ResourceRequirements, SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;
use toolyard_core::script::Script;

use super::options::PodOptions;
use crate::error::OperatorError;

/// The container that runs the script.
pub const SCRIPT: &str = "script";
/// The container that installs its packages before.
pub const PACKAGES: &str = "packages";

/// The label that says whose pod this is.
pub const GATEWAY_LABEL: &str = "toolyard.dev/gateway";
/// The label that policies find those pods by that are to reach something: [`EGRESS`].
pub const NETWORK_LABEL: &str = "toolyard.dev/network";
/// The value of [`NETWORK_LABEL`] of a pod that installs packages, or whose script may use the network.
pub const EGRESS: &str = "egress";
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "toolyard");

const SCRATCH_PATH: &str = "/tmp";
const PACKAGES_PATH: &str = "/tmp/pypackages";
const USER: i64 = 1000;

/// The kernel takes no argument and no variable of 128 KiB. The longest name and its `=` are a part of it, and a zero.
const LONGEST_TEXT: usize = 128 * 1024 - "ROCKBOT_SCRIPT=".len() - 1;
const LONGEST_REQUIREMENT: usize = 1000;
const MOST_PACKAGES: usize = 100;

/// No pod lives longer.
pub(crate) const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// A label's value, and a name, has at most so many characters.
const LONGEST_NAME: usize = 63;

/// What takes the network away and becomes the script.
const WALL: &str = include_str!("wall.py");
const UNWALLED: &str = r#"exec python -c "$ROCKBOT_SCRIPT""#;

/// The pod that runs a script. `guid` tells it from all others: 32 hexadecimal digits.
#[must_use]
pub fn pod(script: &Script, options: &PodOptions, guid: &str) -> Pod {
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

/// How long a pod may take, from when its node has it.
#[must_use]
pub fn deadline(script: &Script, options: &PodOptions) -> Duration {
    let deadline = script.timeout.saturating_add(options.allowance(&script.packages)).min(LONGEST_LIFE);
    Duration::from_secs(deadline.as_secs() + u64::from(deadline.subsec_nanos() > 0))
        .max(Duration::from_secs(1))
}

/// What finds the pods of a gateway.
pub(crate) fn selector(options: &PodOptions) -> String {
    let (key, value) = MANAGED_BY;
    format!("app={},{key}={value},{GATEWAY_LABEL}={}", options.prefix, options.gateway)
}

/// Whether a script can be put into a pod.
///
/// # Errors
/// [`OperatorError::Unfit`], in words for who wrote the script.
pub(crate) fn check(script: &Script) -> Result<(), OperatorError> {
    let unfit = |what: String| Err(OperatorError::Unfit(what));
    let input = script.input.as_deref().unwrap_or_default();
    for (what, text) in [("script", &*script.source), ("input", input)] {
        if text.len() > LONGEST_TEXT {
            return unfit(format!("The {what} is longer than {LONGEST_TEXT} bytes"));
        }
        if text.contains('\0') {
            return unfit(format!("The {what} has a zero character"));
        }
    }
    if script.packages.len() > MOST_PACKAGES {
        return unfit(format!("A script has at most {MOST_PACKAGES} packages"));
    }
    match script.packages.iter().find(|package| !is_requirement(package)) {
        Some(package) => unfit(format!("This is no package: {}", package.escape_debug())),
        None => Ok(()),
    }
}

/// What begins with a hyphen would be an option of pip.
fn is_requirement(text: &str) -> bool {
    let is_short = text.len() <= LONGEST_REQUIREMENT && !text.contains(char::is_control);
    is_short && text.trim_start().starts_with(|first: char| first.is_ascii_alphanumeric())
}

fn name(script: &Script, options: &PodOptions, guid: &str) -> String {
    let start: String = script.call_id.chars().take(8).map(|c| c.to_ascii_lowercase()).collect();
    let start: String = start.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut name = format!("{}-{start}-{guid}", options.prefix);
    name.truncate(LONGEST_NAME);
    name.trim_end_matches('-').to_owned()
}

fn labels(script: &Script, options: &PodOptions) -> BTreeMap<String, String> {
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

const fn has_egress(script: &Script, options: &PodOptions) -> bool {
    options.allow_network || !script.packages.is_empty()
}

/// A value begins and ends with a letter or a digit.
fn label_value(text: &str) -> String {
    let is_fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let value: String = text.chars().take(LONGEST_NAME).map(|c| if is_fine(&c) { c } else { '-' }).collect();
    value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

fn spec(script: &Script, options: &PodOptions) -> PodSpec {
    let has_packages = !script.packages.is_empty();
    let secret = options.image_pull_secret.clone().map(|name| vec![LocalObjectReference { name }]);
    let mut volumes = vec![volume("scratch", &options.scratch)];
    volumes.extend(has_packages.then(|| volume(PACKAGES, &options.packages)));
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        active_deadline_seconds: i64::try_from(deadline(script, options).as_secs()).ok(),
        // What is deleted has nothing to say any more.
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

fn runner(script: &Script, options: &PodOptions) -> Container {
    let input = script.input.as_deref().unwrap_or_default();
    let mut env = vec![
        // What was printed before a script was killed is not lost in a buffer.
        variable("PYTHONUNBUFFERED", "1"),
        variable("ROCKBOT_SCRIPT", &script.source),
        variable("ROCKBOT_INPUT", input),
        variable("TOOLYARD_INPUT", input),
    ];
    let mut mounts = Vec::new();
    if !script.packages.is_empty() {
        env.push(variable("PYTHONPATH", PACKAGES_PATH));
        mounts.push(VolumeMount { read_only: Some(true), ..mount(PACKAGES, PACKAGES_PATH) });
    }
    let command: &[&str] = match options.allow_network {
        true => &["sh", "-c", UNWALLED],
        false => &["python", "-I", "-c", WALL],
    };
    container(SCRIPT, command.iter().map(|&word| literal(word)).collect(), env, mounts, options)
}

/// It has neither the script nor its input: what packages run while they are installed has the network.
fn packages(script: &Script, options: &PodOptions) -> Container {
    let pip =
        ["python", "-m", "pip", "install", "--no-input", "--no-cache-dir", "--disable-pip-version-check"];
    let target = ["--progress-bar", "off", "--target", PACKAGES_PATH, "--"];
    let packages = script.packages.iter().map(String::as_str);
    let command = pip.into_iter().chain(target).chain(packages).map(literal).collect();
    let index = options.package_index.as_deref().map(|index| variable("PIP_INDEX_URL", index));
    let mounts = vec![mount(PACKAGES, PACKAGES_PATH)];
    container(PACKAGES, command, index.into_iter().collect(), mounts, options)
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

/// Kubernetes puts variables in the place of `$(NAME)`, in values and in commands, and makes one dollar of two.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests;
