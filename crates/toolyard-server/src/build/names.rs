//! What a handler changes about its tools, in the words of the registry.

use toolyard_core::Json;
use toolyard_core::names::Prefix;
use toolyard_core::overrides::{Argument, Change, Override, Overrides};
use toolyard_manifest as manifest;

pub(super) const fn prefix(prefix: manifest::Prefix) -> Prefix {
    match prefix {
        manifest::Prefix::OnClash => Prefix::OnClash,
        manifest::Prefix::Always => Prefix::Always,
        manifest::Prefix::Never => Prefix::Never,
    }
}

pub(super) fn overrides(overrides: &[(String, manifest::Override)]) -> Overrides {
    let read = |changed: &manifest::Override| match changed {
        manifest::Override::Hide => Override::Hide,
        manifest::Override::Change(changed) => Override::Change(change(changed)),
    };
    overrides.iter().map(|(tool, changed)| (tool.as_str().into(), read(changed))).collect()
}

fn change(change: &manifest::Change) -> Change {
    let manifest::Change { name, title, description, arguments, price, chunking } = change;
    Change {
        name: name.as_deref().map(Into::into),
        title: title.clone(),
        description: description.clone(),
        arguments: arguments.iter().map(|(name, changed)| (name.clone(), argument(changed))).collect(),
        price: *price,
        chunking: *chunking,
    }
}

fn argument(argument: &manifest::Argument) -> Argument {
    match argument {
        manifest::Argument::Pin(value) => Argument::Pin(Json::from_value(value)),
        manifest::Argument::Show { default, description } => Argument::Show {
            default: default.as_ref().map(Json::from_value),
            description: description.clone(),
        },
    }
}
