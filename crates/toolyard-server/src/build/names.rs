//! Converts tool overrides of the manifest.

use toolyard_core::Json;
use toolyard_core::names::PrefixPolicy;
use toolyard_core::overrides::{ArgumentChange, DefinitionOverride, Override, Overrides};
use toolyard_manifest as manifest;

pub(super) const fn prefix(prefix: manifest::PrefixMode) -> PrefixPolicy {
    match prefix {
        manifest::PrefixMode::OnClash => PrefixPolicy::OnClash,
        manifest::PrefixMode::Always => PrefixPolicy::Always,
        manifest::PrefixMode::Never => PrefixPolicy::Never,
    }
}

pub(super) fn overrides(overrides: &[(String, manifest::ToolOverride)]) -> Overrides {
    let read = |changed: &manifest::ToolOverride| match changed {
        manifest::ToolOverride::Hide => Override::Hide,
        manifest::ToolOverride::Change(changed) => Override::Change(change(changed)),
    };
    overrides.iter().map(|(tool, changed)| (tool.as_str().into(), read(changed))).collect()
}

fn change(change: &manifest::ToolModification) -> DefinitionOverride {
    let manifest::ToolModification { name, title, description, arguments, price, chunking } = change;
    DefinitionOverride {
        name: name.as_deref().map(Into::into),
        title: title.clone(),
        description: description.clone(),
        arguments: arguments.iter().map(|(name, changed)| (name.clone(), argument(changed))).collect(),
        price: *price,
        chunking: *chunking,
    }
}

fn argument(argument: &manifest::ArgumentOverride) -> ArgumentChange {
    match argument {
        manifest::ArgumentOverride::Pin(value) => ArgumentChange::Pin(Json::from_value(value)),
        manifest::ArgumentOverride::Show { default, description } => ArgumentChange::Show {
            default: default.as_ref().map(Json::from_value),
            description: description.clone(),
        },
    }
}
