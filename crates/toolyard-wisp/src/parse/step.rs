//! A step of a definition.

use std::time::Duration;

use serde_json::{Map, Value};

use super::DefinitionRules;
use super::members::{MemberReader, excerpt};
use super::problem::ProblemList;
use super::references::EarlierSteps;
use crate::definition::{DirectAction, FailureReaction, InputSource, StepAction, WebTool, WispStep};
use crate::shared_path::SharedPath;

/// Members of a step.
const MEMBERS: [&str; 17] = [
    "id",
    "mode",
    "gateway",
    "server",
    "tool",
    "language",
    "params",
    "input",
    "arguments",
    "prompt",
    "agent",
    "skill",
    "message",
    "timeout_minutes",
    "input_from",
    "output_to",
    "on_failure",
];

/// Members with arguments, of which a step has one.
const PARAMS: [&str; 3] = ["params", "input", "arguments"];

/// Maximum length of an id, and of the name of a language.
const MAX_ID: usize = 64;

/// Maximum time limit of a step in minutes.
const MAX_MINUTES: f64 = 1440.0;

/// The mode of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepMode {
    Direct,
    Llm,
}

/// The gateway of a direct step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepGateway {
    Mcp,
    A2a,
    Script,
    Web,
}

const MODES: [(&str, StepMode); 2] = [("Direct", StepMode::Direct), ("Llm", StepMode::Llm)];

const GATEWAYS: [(&str, StepGateway); 4] = [
    ("Mcp", StepGateway::Mcp),
    ("A2A", StepGateway::A2a),
    ("Script", StepGateway::Script),
    ("Web", StepGateway::Web),
];

/// Reads the steps of a wisp in order.
pub(super) struct StepParser<'a, 'p> {
    rules: DefinitionRules<'a>,
    earlier: EarlierSteps,
    /// Ids of all steps of the wisp, for `skip_to`; `None` for those without one.
    ids: Vec<Option<String>>,
    problems: &'p mut ProblemList,
}

impl<'a, 'p> StepParser<'a, 'p> {
    /// Returns the parser of these steps.
    pub(super) fn new(rules: DefinitionRules<'a>, values: &[Value], problems: &'p mut ProblemList) -> Self {
        let ids = values.iter().map(|value| value.get("id").and_then(Value::as_str).map(str::to_owned));
        Self { rules, earlier: EarlierSteps::default(), ids: ids.collect(), problems }
    }

    /// Reads the next step; `None`, with problems, if it is invalid.
    pub(super) fn step(&mut self, path: &str, number: usize, value: &Value) -> Option<WispStep> {
        let mut members = MemberReader::new(path, value, self.problems)?;
        members.reject_unknown(&MEMBERS);
        let id = id(&mut members, &self.earlier);
        let mode = match members.get("mode") {
            Some(_) => members.word("mode", &MODES),
            None => Some(StepMode::Direct),
        };
        let action = mode.and_then(|mode| match mode {
            StepMode::Direct => direct_action(&mut members, &self.earlier).map(StepAction::Direct),
            StepMode::Llm => prompt(&mut members, &self.earlier, self.rules.has_model).map(StepAction::Llm),
        });
        let output_to = shared_path(&mut members, "output_to");
        let has_folder = self.rules.settings.shared_folder.is_some();
        let input_from = input_source(&mut members, &self.earlier, has_folder);
        let timeout = members.number("timeout_minutes", MAX_MINUTES);
        let on_failure = reaction(path, value, number, &self.ids, self.problems);
        // A step that has problems itself can be referred to, so that each problem is reported once.
        self.earlier.add(id.unwrap_or_default(), output_to.as_ref());
        Some(WispStep {
            id: id?.to_owned(),
            action: action?,
            input_from,
            output_to,
            on_failure: on_failure?,
            timeout: timeout.map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
        })
    }
}

fn id<'a>(members: &mut MemberReader<'a, '_>, earlier: &EarlierSteps) -> Option<&'a str> {
    const EXPECTED: &str = "letters, digits, `-` and `_`, at most 64, unique in the wisp";
    let id = members.required_text("id", EXPECTED)?;
    if !is_name(id) {
        members.fault("id", format!("found `{}`", excerpt(id)), EXPECTED);
        return None;
    }
    if earlier.number_of_folded(id).is_some() {
        members.fault("id", format!("another step has the id `{id}`"), EXPECTED);
        return None;
    }
    Some(id)
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.len() <= MAX_ID && text.bytes().all(is_plain)
}

fn prompt(members: &mut MemberReader<'_, '_>, earlier: &EarlierSteps, has_model: bool) -> Option<String> {
    let prompt = members.required_text("prompt", "the instruction for the model");
    if !has_model {
        let problem = members.problem("mode", "`Llm` steps need a language model, and this gateway has none");
        let hint =
            "use `Direct` steps, or do this part yourself; the operator of the gateway can configure a model";
        members.report(problem.hint(hint));
    }
    let prompt = prompt?;
    earlier.check_text(members, "prompt", prompt);
    Some(prompt.to_owned())
}

fn direct_action(members: &mut MemberReader<'_, '_>, earlier: &EarlierSteps) -> Option<DirectAction> {
    if members.get("gateway").is_none() {
        members.fault("gateway", "the member is missing", "one of Mcp, A2A, Script, Web");
        return None;
    }
    let gateway = members.word("gateway", &GATEWAYS)?;
    let params = checked_params(members, earlier);
    match gateway {
        StepGateway::Mcp => {
            let server = members.required_text("server", "the name of a server");
            let tool = members.required_text("tool", "the name of a tool of the server");
            let (server, tool) = (server?.to_owned(), tool?.to_owned());
            Some(DirectAction::Mcp { server, tool, params: params? })
        }
        StepGateway::A2a => a2a(members, earlier),
        StepGateway::Script => script(members, params),
        StepGateway::Web => web(members, params),
    }
}

fn checked_params(members: &mut MemberReader<'_, '_>, earlier: &EarlierSteps) -> Option<Map<String, Value>> {
    let params = members.object(&PARAMS)?;
    let name = PARAMS.into_iter().find(|name| members.get(name).is_some()).unwrap_or(PARAMS[0]);
    for (member, value) in &params {
        earlier.check_value(members, &format!("{name}.{}", excerpt(member)), value);
    }
    Some(params)
}

fn a2a(members: &mut MemberReader<'_, '_>, earlier: &EarlierSteps) -> Option<DirectAction> {
    let agent = members.required_text("agent", "the name of an agent");
    let skill = members.required_text("skill", "the id of a skill of the agent");
    let message = members.required_text("message", "the text for the agent");
    if let Some(name) = PARAMS.into_iter().find(|name| members.get(name).is_some()) {
        members.fault(name, "a step for an agent has no parameters", "`agent`, `skill` and `message`");
    }
    let (agent, skill, message) = (agent?.to_owned(), skill?.to_owned(), message?.to_owned());
    earlier.check_text(members, "message", &message);
    Some(DirectAction::A2a { agent, skill, message })
}

fn script(members: &mut MemberReader<'_, '_>, params: Option<Map<String, Value>>) -> Option<DirectAction> {
    let language = match members.get("language") {
        Some(_) => members.text("language").map(str::to_lowercase),
        None => Some("python".to_owned()),
    };
    if let Some(other) = language.as_ref().filter(|language| !is_name(language)) {
        members.fault("language", format!("found `{}`", excerpt(other)), "a name such as python");
        return None;
    }
    let params = params?;
    let source = params.get("script").and_then(Value::as_str);
    if source.is_none_or(|source| source.trim().is_empty()) {
        members.fault("params.script", "the member is missing", "the source of the script");
        return None;
    }
    Some(DirectAction::Script { language: language?, params })
}

fn web(members: &mut MemberReader<'_, '_>, params: Option<Map<String, Value>>) -> Option<DirectAction> {
    const TOOLS: [(&str, WebTool); 2] = [("web_search", WebTool::Search), ("web_browse", WebTool::Browse)];
    if members.get("tool").is_none() {
        members.fault("tool", "the member is missing", "one of web_search, web_browse");
    }
    let tool = members.word("tool", &TOOLS);
    Some(DirectAction::Web { tool: tool?, params: params? })
}

fn shared_path(members: &mut MemberReader<'_, '_>, name: &str) -> Option<SharedPath> {
    let text = members.text(name)?;
    match SharedPath::parse(text) {
        Ok(path) => Some(path),
        Err(error) => {
            members.fault(name, error.to_string(), "a relative path such as reports/summary.md");
            None
        }
    }
}

fn input_source(
    members: &mut MemberReader<'_, '_>,
    earlier: &EarlierSteps,
    has_folder: bool,
) -> Option<InputSource> {
    const NAME: &str = "input_from";
    let text = members.text(NAME)?;
    if text.contains("{{") {
        earlier.check_text(members, NAME, text);
        return Some(InputSource::Template(text.to_owned()));
    }
    let path = shared_path(members, NAME)?;
    if let Some(number) = earlier.writer_of(&path) {
        return Some(InputSource::Step(number));
    }
    if !has_folder {
        let message =
            format!("no earlier step has the output `{path}`, and there is no shared folder with files");
        members.fault(
            NAME,
            message,
            "`output_to` of an earlier step, or a template such as {{steps.ID.result}}",
        );
        return None;
    }
    Some(InputSource::File(path))
}

/// Reads `on_failure`.
fn reaction(
    path: &str,
    value: &Value,
    number: usize,
    ids: &[Option<String>],
    problems: &mut ProblemList,
) -> Option<FailureReaction> {
    let Some(value) = value.get("on_failure").filter(|value| !value.is_null()) else {
        return Some(FailureReaction::Abort);
    };
    let path = format!("{path}.on_failure");
    let mut members = MemberReader::new(&path, value, problems)?;
    members.reject_unknown(&["action", "skip_to"]);
    if members.get("action").is_none() {
        members.fault("action", "the member is missing", "one of abort, skip_to");
        return None;
    }
    if !members.word("action", &[("abort", false), ("skip_to", true)])? {
        return Some(FailureReaction::Abort);
    }
    const EXPECTED: &str = "the id of a later step";
    let target = members.required_text("skip_to", EXPECTED)?;
    let later = ids.iter().enumerate().skip(number + 1);
    let found = later.filter(|(_, id)| id.as_deref() == Some(target)).map(|(at, _)| at).next();
    if found.is_none() {
        members.fault("skip_to", format!("`{}` is no later step", excerpt(target)), EXPECTED);
    }
    found.map(FailureReaction::SkipTo)
}
