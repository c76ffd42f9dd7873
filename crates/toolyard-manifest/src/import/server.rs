//! Converts a client's server to a handler.

use std::collections::HashSet;

use super::{ImportNote, entry::EntryFields, name::NameAllocator, rewrite::rewrite_value};
use crate::{
    cursor::ValueCursor,
    manifest,
    problem::{ManifestProblem, quoted},
    report::ProblemReport,
    tree::{NodeContent, ObjectMember, TreeNode},
};

/// A server of a file, with its original name.
struct ClientServer<'a> {
    name: String,
    place: ValueCursor<'a>,
    entry: EntryFields<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ImportedTransport {
    Stdio,
    Sse,
    StreamableHttp,
}

/// Names of the URL of a server.
const URL_NAMES: &[&str] =
    &["url", "serverUrl", "serverURL", "server_url", "httpUrl", "streamableHttp", "Url", "endpoint"];

type NodeMembers = Vec<(&'static str, TreeNode)>;

/// The handlers of a file's servers, in their order.
#[derive(Default)]
pub(super) struct ServerHandlers {
    pub(super) handlers: Vec<TreeNode>,
    /// The servers that are no valid handlers, by their original names.
    pub(super) invalid: Vec<(String, Vec<ManifestProblem>)>,
}

/// Converts the servers. Disabled servers and unsupported transports are skipped with a note. The problems of a server
/// are not reported: they cost that server only.
pub(super) fn handlers(
    source: &str,
    servers: &ValueCursor<'_>,
    names: &mut NameAllocator,
    notes: &mut Vec<ImportNote>,
    report: &ProblemReport<'_>,
) -> ServerHandlers {
    let entries: Vec<_> = match servers.content() {
        NodeContent::Object(members) => {
            members.iter().map(|member| (servers.member(member), Some(&*member.name))).collect()
        }
        NodeContent::List(_) => {
            let items = servers.clone().list(Some).unwrap_or_default();
            items.into_iter().map(|item| (item, None)).collect()
        }
        _ => {
            servers.report_wrong_type("an object", None);
            return ServerHandlers::default();
        }
    };
    let mut all = ServerHandlers::default();
    let mut valid = Vec::new();
    for (place, name) in entries {
        let before = report.count();
        let server = ClientServer::of(place, name, notes);
        match (report.take_since(before), server) {
            (problems, server) if problems.is_empty() => valid.extend(server),
            (problems, server) => {
                let name = server.map_or_else(|| name.unwrap_or_default().to_owned(), |server| server.name);
                all.invalid.push((name, problems));
            }
        }
    }
    let original_names: Vec<_> = valid.iter().map(|server| server.name.as_str()).collect();
    let names = names.handler_names(&original_names);
    for (server, name) in valid.into_iter().zip(names) {
        let (before, original_name) = (report.count(), server.name.clone());
        let mut own_notes = Vec::new();
        let handler = server.into_handler(&name, &mut own_notes);
        let mut problems = report.take_since(before);
        if problems.is_empty() {
            problems = handler.as_ref().map(|handler| check(source, handler, report)).unwrap_or_default();
        }
        match problems.is_empty() {
            true => {
                notes.extend(own_notes);
                all.handlers.extend(handler);
            }
            false => all.invalid.push((original_name, problems)),
        }
    }
    all
}

/// Path to the configuration of a handler in the document of [`check`].
pub(super) const CONFIG_PATH: &str = "spec.handlers[0].mcpConfig";

/// Returns the problems of a handler.
fn check(source: &str, handler: &TreeNode, report: &ProblemReport<'_>) -> Vec<ManifestProblem> {
    let document = super::document("imported".to_owned(), vec![handler.clone()]);
    let own = report.of_part();
    manifest::check(ValueCursor::document(source, &document, &own));
    own.take_since(0)
}

/// Removes the notes that servers have been given these names, which no other ones have.
pub(super) fn without_renames(notes: &mut Vec<ImportNote>, names: &[String]) {
    let endings: HashSet<_> = names.iter().map(|name| renamed_to(name)).collect();
    notes.retain(|note| {
        let ending = note.message.rfind(RENAMED_TO).map_or("", |start| &note.message[start..]);
        !endings.contains(ending)
    });
}

const RENAMED_TO: &str = " is renamed to ";

fn renamed_to(name: &str) -> String {
    format!("{RENAMED_TO}{}", quoted(name))
}

impl<'a> ClientServer<'a> {
    /// Reads an enabled server. A server in a list contains its own name.
    fn of(place: ValueCursor<'a>, name: Option<&str>, notes: &mut Vec<ImportNote>) -> Option<Self> {
        let mut entry = EntryFields::of(&place)?;
        let name = match name {
            Some(name) => name,
            None => entry.take_text(&["Name", "name"]).unwrap_or_default(),
        };
        let disabled = entry.take_flag(&["disabled", "Disabled"]).unwrap_or(false);
        if disabled || entry.take_flag(&["enabled", "Enabled"]) == Some(false) {
            notes.push(ImportNote::at(&place, format!("{} is disabled and not imported", quoted(name))));
            return None;
        }
        Some(Self { name: name.to_owned(), place, entry })
    }

    fn into_handler(mut self, name: &str, notes: &mut Vec<ImportNote>) -> Option<TreeNode> {
        let config = self.config(notes)?;
        if self.name != name {
            let message = format!("{}{}", quoted(&self.name), renamed_to(name));
            notes.push(ImportNote::at(&self.place, message));
        }
        self.entry.finish(notes);
        let position = self.place.node().position;
        let text = |text| TreeNode::text(text, position);
        let members = vec![
            ("name", text(name)),
            ("type", text("mcp")),
            ("mcpConfig", TreeNode::object(config, position)),
        ];
        Some(TreeNode::object(members, position))
    }

    /// Builds the object `mcpConfig`.
    fn config(&mut self, notes: &mut Vec<ImportNote>) -> Option<NodeMembers> {
        self.entry.unfold(&["transport", "type", "streamableHttp", "http", "sse", "stdio"]);
        let transport = match self.entry.take_text(&["type", "transport", "transportType", "Type"]) {
            None => None,
            Some(word) => Some(transport(word).or_else(|| {
                let (name, word) = (quoted(&self.name), quoted(word));
                let message = format!("{name} is not imported: unsupported transport {word}");
                notes.push(ImportNote::at(&self.place, message));
                None
            })?),
        };
        let is_program = matches!(transport, None | Some(ImportedTransport::Stdio));
        self.entry.take(&["source"]);
        let command = self.entry.take(&["command", "Command"]).filter(|_| is_program);
        let is_remote = command.is_none() && transport != Some(ImportedTransport::Stdio);
        let url = self.entry.take(URL_NAMES).filter(|_| is_remote);
        let mut config = match (command, url) {
            (Some(command), _) => self.program(&command, notes),
            (None, Some(url)) => self.remote(&url, transport, notes),
            (None, None) => {
                let problem = self.place.problem("this server has neither a command nor a URL");
                self.place.report(problem.expected("`command` or `url`"));
                return None;
            }
        };
        config.extend(self.filter());
        Some(config)
    }

    fn program(&mut self, command: &ValueCursor<'_>, notes: &mut Vec<ImportNote>) -> NodeMembers {
        // Earlier versions of Zed have one object for the program.
        if let NodeContent::Object(_) = command.content()
            && let Some(mut program) = EntryFields::of(command)
            && let Some(path) = program.take(&["path"])
        {
            let config = program_config(&mut program, &path, notes);
            program.finish(notes);
            return config;
        }
        program_config(&mut self.entry, command, notes)
    }

    /// Clients detect the transport of a server, and so does the gateway: the value is only the first transport to try.
    fn remote(
        &mut self,
        url: &ValueCursor<'_>,
        transport: Option<ImportedTransport>,
        notes: &mut Vec<ImportNote>,
    ) -> NodeMembers {
        let looks_like_sse = matches!(url.content(), NodeContent::Text(url) if url.ends_with("/sse"));
        let word = match transport {
            Some(ImportedTransport::Sse) => "sse",
            None if looks_like_sse => "sse",
            _ => "streamable-http",
        };
        let transport = TreeNode::text(word, url.node().position);
        let mut config = vec![("transport", transport), ("endpoint", rewrite_value(url, notes))];
        let headers = self.headers(notes);
        if !headers.is_empty() {
            let content = NodeContent::Object(headers);
            config.push(("headers", TreeNode { content, position: url.node().position }));
        }
        config
    }

    /// Builds the headers. Codex names the variables of a token and of headers.
    fn headers(&mut self, notes: &mut Vec<ImportNote>) -> Vec<ObjectMember> {
        let mut headers = Vec::new();
        for value in [self.entry.take(&["headers", "Headers", "http_headers"])].into_iter().flatten() {
            match rewrite_value(&value, notes).content {
                NodeContent::Object(members) => headers.extend(members),
                _ => value.report_wrong_type("an object", None),
            }
        }
        let reference = |name: &str, prefix: &str, variable: &ValueCursor<'_>| {
            let position = variable.node().position;
            let text = format!("{prefix}${{{}}}", variable.literal_text()?);
            Some(ObjectMember { name: name.to_owned(), position, value: TreeNode::text(&text, position) })
        };
        if let Some(variable) = self.entry.take(&["bearer_token_env_var"]) {
            headers.extend(reference("Authorization", "Bearer ", &variable));
        }
        if let Some(variables) = self.entry.take(&["env_http_headers"])
            && let NodeContent::Object(members) = variables.content()
        {
            let header = |member| variables.member(member);
            headers.extend(members.iter().filter_map(|member| reference(&member.name, "", &header(member))));
        }
        headers
    }

    /// Builds the tool filter. If both lists are present, the allow list takes precedence, as it does for clients.
    fn filter(&mut self) -> Option<(&'static str, TreeNode)> {
        let lists = [
            (
                "allowlist",
                self.entry.take(&["allowedTools", "includeTools", "AllowedTools", "enabled_tools"]),
            ),
            (
                "blocklist",
                self.entry.take(&[
                    "deniedTools",
                    "excludeTools",
                    "disabledTools",
                    "DeniedTools",
                    "disabled_tools",
                ]),
            ),
        ];
        // An empty list filters nothing.
        let has_items =
            |list: &TreeNode| !matches!(&list.content, NodeContent::List(items) if items.is_empty());
        let lists: NodeMembers = lists
            .into_iter()
            .filter_map(|(name, list)| Some((name, list?.node().clone())))
            .filter(|(_, list)| has_items(list))
            .collect();
        let position = lists.first()?.1.position;
        Some(("toolFilter", TreeNode::object(lists, position)))
    }
}

/// Builds the configuration of a program, whose other fields are in `entry`.
fn program_config(
    entry: &mut EntryFields<'_>,
    command: &ValueCursor<'_>,
    notes: &mut Vec<ImportNote>,
) -> NodeMembers {
    let transport = TreeNode::text("stdio", command.node().position);
    let mut config = vec![("transport", transport), ("command", rewrite_value(command, notes))];
    let others: [(_, &[&str]); 3] = [
        ("args", &["args", "Arguments"]),
        ("env", &["env", "EnvironmentVariables"]),
        ("workDir", &["cwd", "workDir", "WorkingDirectory"]),
    ];
    for (field, names) in others {
        config.extend(entry.take(names).map(|value| (field, rewrite_value(&value, notes))));
    }
    config
}

fn transport(word: &str) -> Option<ImportedTransport> {
    match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" => Some(ImportedTransport::Stdio),
        "sse" => Some(ImportedTransport::Sse),
        "http" | "streamablehttp" | "httpstream" | "remote" => Some(ImportedTransport::StreamableHttp),
        _ => None,
    }
}
