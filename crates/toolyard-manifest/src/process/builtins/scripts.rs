//! The section `builtins.scripts`.

use serde_json::Value;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    field_type::{
        CountField, CpuField, FieldType, FlagField, KeywordField, SizeField, TextField, WritableField,
    },
    formats::{self, FormatError},
    object_schema::SchemaDefinitions,
    section::{nested, section},
};

/// With less Python does not start.
const MIN_MEMORY_BYTES: usize = 32 << 20;
/// The smallest file takes a page.
const MIN_DISK_BYTES: usize = 64 << 10;
/// With less not even an error message fits.
const MIN_OUTPUT_BYTES: usize = 4 << 10;

section! {
    /// Settings of `execute_python_script`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ScriptSettings: Default = "scripts" {
        /// Runner of scripts: this machine, in the sandbox, a pod of a cluster for each script, or a scripts manager on
        /// the message bus, whose settings then apply.
        pub runner: ScriptRunner = "runner", RunnerField, default ScriptRunner::Local;
        /// Permit network access.
        pub network: bool = "network", FlagField, default false;
        /// Install packages for scripts, with pip or uv in a sandbox that can reach the package index.
        pub packages: bool = "packages", FlagField, default true;
        /// Memory of a script and its child processes, at least 32 MiB.
        pub memory_bytes: usize = "memory", SizeField(MIN_MEMORY_BYTES), default 256 << 20;
        /// Share of the processors per script: a number of processors, or of thousandths with an `m`.
        pub cpu_millis: u32 = "cpu", CpuField, default 500;
        /// Maximum number of processes and threads of a script.
        pub processes: usize = "processes", CountField, default 64;
        /// Maximum size of written files, at least 64 KiB.
        pub disk_bytes: usize = "disk", SizeField(MIN_DISK_BYTES), default 64 << 20;
        /// Maximum size of the output that is kept, at least 4 KiB.
        pub output_bytes: usize = "output", SizeField(MIN_OUTPUT_BYTES), default 1 << 20;
        /// Maximum number of running scripts; more are refused.
        pub concurrent: usize = "concurrent", CountField, default 8;
        /// Pods, for the runner `kubernetes`.
        pub kubernetes: PodSettings = "kubernetes", nested::<PodSettings>(), described PodSettings::default();
    }
}

section! {
    /// The pods of scripts.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PodSettings: Default = "pods" {
        /// Namespace of the pods.
        ///
        /// As in the contract's own software.
        pub namespace: String = "namespace",
            TextField::new(formats::namespace).pattern("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"),
            default "rockbot-scripts".to_owned();
        /// Image of the pods, which has Python 3 as `python`.
        pub image: String = "image", ANY_NAME, default "python:3.12-slim".to_owned();
        /// Pull secret of the image, in the same namespace.
        pub image_pull_secret: Option<String> = "imagePullSecret", ANY_NAME, optional;
        /// Runtime class of the pods, such as `gvisor`. Default: that of the cluster.
        pub runtime_class: Option<String> = "runtimeClass", ANY_NAME, optional;
        /// Package index of pip. Default: that of pip.
        pub package_index: Option<String> = "packageIndex", ANY_NAME, optional;
    }
}

/// A non-empty string that the cluster or pip reads. An index may contain a password.
const ANY_NAME: TextField<String> = TextField::new(any_name).secret();

fn any_name(text: &str) -> Result<String, FormatError> {
    formats::non_empty_name(text).map(|()| text.to_owned())
}

/// The runner of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptRunner {
    /// `local`: on this machine, in the sandbox.
    Local,
    /// `kubernetes`: each in a pod of the cluster.
    Kubernetes,
    /// `bus`: a scripts manager on the message bus.
    Bus,
}

const RUNNER: KeywordChoice<ScriptRunner> = KeywordChoice {
    noun: "runner of scripts",
    words: &[
        ("local", ScriptRunner::Local),
        ("kubernetes", ScriptRunner::Kubernetes),
        ("bus", ScriptRunner::Bus),
    ],
    unsupported: &[],
};

/// The runner of scripts, of which a build can lack one.
struct RunnerField;

impl FieldType for RunnerField {
    type Value = ScriptRunner;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<ScriptRunner> {
        cursor.choice(&RUNNER)
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        KeywordField(&RUNNER).schema(definitions)
    }
}

impl WritableField for RunnerField {
    fn write(&self, value: &ScriptRunner) -> Value {
        KeywordField(&RUNNER).write(value)
    }
}
