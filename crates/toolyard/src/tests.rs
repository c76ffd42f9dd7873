//! What holds for every command.

use clap::{Command, CommandFactory};

use crate::Cli;

const PAGE: &str = include_str!("../../../docs/command-line.md");

/// Every command that people see, the whole of them first.
fn commands() -> Vec<Command> {
    fn below(command: &Command, found: &mut Vec<Command>) {
        found.push(command.clone());
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            below(command, found);
        }
    }
    let mut found = Vec::new();
    below(&Cli::command(), &mut found);
    found
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_help_has_examples() {
    for command in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Examples:\n  toolyard"), "{}", command.get_name());
    }
}

#[test]
fn the_page_is_about_every_command_and_option() {
    let headings: Vec<_> = PAGE.lines().filter_map(|line| line.strip_prefix("## `toolyard ")).collect();
    let names: Vec<_> = commands()[1..].iter().map(|command| format!("{}`", command.get_name())).collect();
    assert_eq!(headings, names);
    for command in commands() {
        let section = match PAGE.split_once(&format!("## `toolyard {}`", command.get_name())) {
            Some((_, rest)) => rest.split("\n## ").next().unwrap_or_default(),
            None => PAGE,
        };
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let named = option.get_long().is_none_or(|long| section.contains(&format!("`--{long}")));
            assert!(named, "{} --{:?}", command.get_name(), option.get_long());
        }
    }
}

/// Numbers that a script relies on are said where people look for them.
#[test]
fn exit_statuses_are_documented() {
    let help = Cli::command().get_after_help().map(ToString::to_string).unwrap_or_default();
    for status in [0, 1, 2] {
        assert!(help.contains(&format!("\n  {status}  ")), "{status}");
        assert!(PAGE.contains(&format!("\n| {status} | ")), "{status}");
    }
}
