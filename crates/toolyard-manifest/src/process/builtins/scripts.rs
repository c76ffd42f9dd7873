//! The reader of `builtins.scripts`.

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    formats,
};

/// Settings of `execute_python_script`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptSettings {
    /// `runner`: the runner of scripts. Default: this machine.
    pub runner: ScriptRunner,
    /// `network`: network access of scripts. Default: false.
    pub network: bool,
    /// `packages`: installation of packages for scripts, which needs the network. Default: true.
    pub packages: bool,
    /// `memory`: memory of a script and its child processes, in bytes. Default: 256 MiB.
    pub memory_bytes: usize,
    /// `cpu`: thousandths of a processor per script. Default: 500: half of one.
    pub cpu_millis: u32,
    /// `processes`: maximum number of processes and threads of a script. Default: 64.
    pub processes: usize,
    /// `disk`: maximum number of bytes that a script may write to files. Default: 64 MiB.
    pub disk_bytes: usize,
    /// `output`: maximum size of the output that is kept, in bytes. Default: 1 MiB.
    pub output_bytes: usize,
    /// `concurrent`: maximum number of running scripts; more are refused. Default: 8.
    pub concurrent: usize,
    /// `kubernetes`: pods, for the runner `kubernetes`.
    pub kubernetes: PodSettings,
}

/// The pods of scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSettings {
    /// `namespace`: their namespace. Default: `rockbot-scripts`, as in the contract's own software.
    pub namespace: String,
    /// `image`: their image, which has Python as `python`. Default: `python:3.12-slim`.
    pub image: String,
    /// `imagePullSecret`: the pull secret of the image. `None`: it needs none.
    pub image_pull_secret: Option<String>,
    /// `runtimeClass`: their runtime class, such as `gvisor`. `None`: that of the cluster.
    pub runtime_class: Option<String>,
    /// `packageIndex`: the package index of pip. `None`: pip's default.
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

/// The runner of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptRunner {
    /// `local`: on this machine, in the sandbox.
    Local,
    /// `kubernetes`: each in a pod of the cluster.
    Kubernetes,
}

const RUNNER: KeywordChoice<ScriptRunner> = KeywordChoice {
    noun: "runner of scripts",
    words: &[("local", ScriptRunner::Local), ("kubernetes", ScriptRunner::Kubernetes)],
    unsupported: &[],
};

/// With less Python does not start.
const MIN_MEMORY_BYTES: usize = 32 << 20;
/// The smallest file takes a page.
const MIN_DISK_BYTES: usize = 64 << 10;
/// With less not even an error message fits.
const MIN_OUTPUT_BYTES: usize = 4 << 10;

impl Default for ScriptSettings {
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

/// Reads the object `scripts`; `enabled: false` becomes `None`.
pub(super) fn scripts(cursor: ValueCursor<'_>) -> Option<Option<ScriptSettings>> {
    let mut fields = cursor.fields()?;
    let default = ScriptSettings::default();
    let enabled = fields.with_default("enabled", ValueCursor::flag, true);
    let scripts = ScriptSettings {
        runner: fields.with_default("runner", |cursor| cursor.choice(&RUNNER), default.runner),
        network: fields.with_default("network", ValueCursor::flag, default.network),
        packages: fields.with_default("packages", ValueCursor::flag, default.packages),
        memory_bytes: fields.with_default(
            "memory",
            |cursor| cursor.size(MIN_MEMORY_BYTES),
            default.memory_bytes,
        ),
        cpu_millis: fields.with_default("cpu", ValueCursor::cpu, default.cpu_millis),
        processes: fields.with_default("processes", ValueCursor::count, default.processes),
        disk_bytes: fields.with_default("disk", |cursor| cursor.size(MIN_DISK_BYTES), default.disk_bytes),
        output_bytes: fields.with_default(
            "output",
            |cursor| cursor.size(MIN_OUTPUT_BYTES),
            default.output_bytes,
        ),
        concurrent: fields.with_default("concurrent", ValueCursor::count, default.concurrent),
        kubernetes: fields.with_default("kubernetes", pods, default.kubernetes),
    };
    fields.finish();
    Some(enabled.then_some(scripts))
}

fn pods(cursor: ValueCursor<'_>) -> Option<PodSettings> {
    let mut fields = cursor.fields()?;
    let default = PodSettings::default();
    let pods = PodSettings {
        namespace: fields.with_default(
            "namespace",
            |cursor| cursor.parse(formats::namespace),
            default.namespace,
        ),
        image: fields.with_default("image", non_empty_text, default.image),
        image_pull_secret: fields.optional("imagePullSecret", non_empty_text),
        runtime_class: fields.optional("runtimeClass", non_empty_text),
        package_index: fields.optional("packageIndex", non_empty_text),
    };
    fields.finish();
    Some(pods)
}

/// A non-empty string that the cluster or pip reads.
fn non_empty_text(cursor: ValueCursor<'_>) -> Option<String> {
    let text = cursor.clone().text()?;
    match formats::non_empty_name(&text) {
        Ok(()) => Some(text),
        Err(invalid) => {
            cursor.report(invalid.problem(cursor.location(), "this"));
            None
        }
    }
}
