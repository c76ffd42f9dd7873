//! Rules that apply to every command.

use clap::{Arg, Command, CommandFactory};

use crate::CommandLine;

const PAGE: &str = include_str!("../../../docs/command-line.md");

/// Returns every visible command with its path, the root command first.
fn commands() -> Vec<(String, Command)> {
    fn below(path: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            below(&format!("{path} {}", command.get_name()), command, found);
        }
    }
    let mut commands_found = Vec::new();
    below("toolyard", &CommandLine::command(), &mut commands_found);
    commands_found
}

#[test]
fn clap_definition_is_valid() {
    CommandLine::command().debug_assert();
}

/// Returns an argument with the names of its values and its defaults, such as `--limit <COUNT> [50]`.
fn shown(argument: &Arg) -> String {
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("--{long}, -{short}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => argument.get_id().to_string().to_uppercase(),
    };
    let takes_values = argument.get_action().takes_values();
    let choices: Vec<_> =
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let value = match (choices.is_empty(), argument.get_value_names()) {
        _ if !takes_values => String::new(),
        (false, _) => format!(" <{}>", choices.join("|")),
        (true, Some(names)) if !argument.is_positional() => format!(" <{}>", names.join("> <")),
        (true, _) => String::new(),
    };
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = if takes_values && !defaults.is_empty() {
        format!(" [{}]", defaults.join(" "))
    } else {
        String::new()
    };
    let need = if argument.is_required_set() { " (required)" } else { "" };
    format!("{name}{value}{default}{need}")
}

/// All commands with their arguments. What the help says about them is for people to read, and one page shows its form.
#[test]
fn command_tree() {
    let is_shown = |path: &str, argument: &Arg| {
        !argument.is_hide_set() && (path == "toolyard" || !argument.is_global_set())
    };
    let mut tree = String::new();
    for (path, command) in commands() {
        tree += &format!("{path}\n");
        for argument in command.get_arguments().filter(|argument| is_shown(&path, argument)) {
            tree += &format!("  {}\n", shown(argument));
        }
    }
    insta::assert_snapshot!(tree);
}

#[test]
fn every_help_has_examples() {
    for (path, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Examples:\n  toolyard"), "{path}");
    }
}

#[test]
fn docs_page_covers_every_command_and_option() {
    let headings: Vec<_> = PAGE.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let names: Vec<_> = commands()[1..].iter().map(|(path, _)| format!("`{path}`")).collect();
    assert_eq!(headings, names);
    for (path, command) in commands() {
        let section = match PAGE.split_once(&format!("## `{path}`")) {
            Some((_, rest)) => rest.split("\n## ").next().unwrap_or_default(),
            None => PAGE,
        };
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let named = option.get_long().is_none_or(|long| section.contains(&format!("`--{long}")));
            assert!(named, "{path} --{:?}", option.get_long());
        }
    }
}

/// The exit statuses are in the help text and on the docs page.
#[test]
fn exit_statuses_are_documented() {
    let help = CommandLine::command().get_after_help().map(ToString::to_string).unwrap_or_default();
    for status in [0, 1, 2] {
        assert!(help.contains(&format!("\n  {status}  ")), "{status}");
        assert!(PAGE.contains(&format!("\n| {status} | ")), "{status}");
    }
}
