//! The reader of `builtins.scripts`.

use crate::{
    cursor::{Choice, Cursor},
    forms,
};

/// How `execute_python_script` runs scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    /// `runner`: where they run. On this machine.
    pub runner: ScriptRunner,
    /// `network`: whether they reach the network. They do not.
    pub network: bool,
    /// `packages`: whether packages are installed for them, which needs the network. They are.
    pub packages: bool,
    /// `memory`: bytes that a script has, with all that it starts. 256 MiB.
    pub memory_bytes: usize,
    /// `cpu`: thousandths of a processor that it has. 500: half of one.
    pub cpu_millis: u32,
    /// `processes`: processes and threads that it may be. 64.
    pub processes: usize,
    /// `disk`: bytes that it may write to files. 64 MiB.
    pub disk_bytes: usize,
    /// `output`: bytes that are kept of what it prints. 1 MiB.
    pub output_bytes: usize,
    /// `concurrent`: scripts that run at a time; more are refused. 8.
    pub concurrent: usize,
    /// `kubernetes`: the pods, where scripts run in such.
    pub kubernetes: PodSettings,
}

/// The pods of scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSettings {
    /// `namespace`: where they are. `rockbot-scripts`, as the contract's own software has it.
    pub namespace: String,
    /// `image`: what they are made of, which has Python as `python`. `python:3.12-slim`.
    pub image: String,
    /// `imagePullSecret`: what the image is pulled with. None: nothing is needed.
    pub image_pull_secret: Option<String>,
    /// `runtimeClass`: such as `gvisor`. None: the cluster's own.
    pub runtime_class: Option<String>,
    /// `packageIndex`: where pip finds packages. None: where it looks by itself.
    pub package_index: Option<String>,
}

impl Default for PodSettings {
    fn default() -> Self {
        Self {
            namespace: "rockbot-scripts".to_owned(),
            image: "python:3.12-slim".to_owned(),
            image_pull_secret: None,
            runtime_class: None,
            package_index: None,
        }
    }
}

/// Where scripts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptRunner {
    /// `local`: on this machine, in the sandbox.
    Local,
    /// `kubernetes`: each in a pod of the cluster.
    Kubernetes,
}

const RUNNER: Choice<ScriptRunner> = Choice {
    noun: "runner of scripts",
    words: &[("local", ScriptRunner::Local), ("kubernetes", ScriptRunner::Kubernetes)],
    not_yet: &[],
};

/// With less Python does not start.
const LEAST_MEMORY: usize = 32 << 20;
/// The smallest files that there are take a page.
const LEAST_DISK: usize = 64 << 10;
/// With less not even the message of an error fits.
const LEAST_OUTPUT: usize = 4 << 10;

impl Default for Scripts {
    fn default() -> Self {
        Self {
            runner: ScriptRunner::Local,
            network: false,
            packages: true,
            memory_bytes: 256 << 20,
            cpu_millis: 500,
            processes: 64,
            disk_bytes: 64 << 20,
            output_bytes: 1 << 20,
            concurrent: 8,
            kubernetes: PodSettings::default(),
        }
    }
}

/// Reads the object `scripts`; one that is switched off is none.
pub(super) fn scripts(cursor: Cursor<'_>) -> Option<Option<Scripts>> {
    let mut fields = cursor.fields()?;
    let default = Scripts::default();
    let enabled = fields.with_default("enabled", Cursor::flag, true);
    let scripts = Scripts {
        runner: fields.with_default("runner", |cursor| cursor.choice(&RUNNER), default.runner),
        network: fields.with_default("network", Cursor::flag, default.network),
        packages: fields.with_default("packages", Cursor::flag, default.packages),
        memory_bytes: fields.with_default("memory", |cursor| cursor.size(LEAST_MEMORY), default.memory_bytes),
        cpu_millis: fields.with_default("cpu", Cursor::cpu, default.cpu_millis),
        processes: fields.with_default("processes", Cursor::count, default.processes),
        disk_bytes: fields.with_default("disk", |cursor| cursor.size(LEAST_DISK), default.disk_bytes),
        output_bytes: fields.with_default("output", |cursor| cursor.size(LEAST_OUTPUT), default.output_bytes),
        concurrent: fields.with_default("concurrent", Cursor::count, default.concurrent),
        kubernetes: fields.with_default("kubernetes", pods, default.kubernetes),
    };
    fields.finish();
    Some(enabled.then_some(scripts))
}

fn pods(cursor: Cursor<'_>) -> Option<PodSettings> {
    let mut fields = cursor.fields()?;
    let default = PodSettings::default();
    let pods = PodSettings {
        namespace: fields.with_default(
            "namespace",
            |cursor| cursor.parse(forms::namespace),
            default.namespace,
        ),
        image: fields.with_default("image", name, default.image),
        image_pull_secret: fields.optional("imagePullSecret", name),
        runtime_class: fields.optional("runtimeClass", name),
        package_index: fields.optional("packageIndex", name),
    };
    fields.finish();
    Some(pods)
}

/// A text that the cluster or pip reads, and that is not empty.
fn name(cursor: Cursor<'_>) -> Option<String> {
    let text = cursor.clone().text()?;
    match forms::some_name(&text) {
        Ok(()) => Some(text),
        Err(invalid) => {
            cursor.report(invalid.problem(cursor.place(), "this"));
            None
        }
    }
}
