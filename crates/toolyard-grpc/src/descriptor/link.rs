//! Resolves the references between descriptors.
//!
//! A type that is missing makes the types unusable that contain it, not the whole set: servers whose reflection leaves
//! out an import are common.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::DescriptorError;
use super::comments::FileComments;
use super::raw::{RawEnum, RawFeatures, RawField, RawFile, RawMessage};
use super::types::{
    Cardinality, EnumType, EnumValue, FieldKind, MessageField, MessageType, Oneof, TypeId, TypePool,
    WellKnown,
};

/// Largest number of a field.
const MAX_FIELD: u64 = (1 << 29) - 1;

/// Values of `google.api.FieldBehavior`.
const REQUIRED: u64 = 2;
const OUTPUT_ONLY: u64 = 3;

/// Values of features (`google.protobuf.FeatureSet`).
const EXPLICIT: u64 = 1;
const IMPLICIT: u64 = 2;
const LEGACY_REQUIRED: u64 = 3;
const OPEN: u64 = 1;
const CLOSED: u64 = 2;
const PACKED: u64 = 1;
const EXPANDED: u64 = 2;
const LENGTH_PREFIXED: u64 = 1;
const DELIMITED: u64 = 2;

/// The name of `google.protobuf.NullValue`.
const NULL_VALUE: &str = "google.protobuf.NullValue";

/// Links files.
#[derive(Default)]
pub(super) struct Linker<'r, 'a> {
    pool: TypePool,
    /// Messages whose fields are not resolved yet, in the order of the pool.
    open: Vec<OpenMessage<'r, 'a>>,
    extensions: Vec<OpenExtension<'r, 'a>>,
}

struct OpenMessage<'r, 'a> {
    raw: &'r RawMessage<'a>,
    features: RawFeatures,
    comments: Vec<Box<str>>,
}

struct OpenExtension<'r, 'a> {
    raw: &'r RawField<'a>,
    scope: String,
    features: RawFeatures,
    comment: Box<str>,
}

/// The surroundings of a declaration.
struct Scope<'s> {
    /// Full name of the package or message.
    name: &'s str,
    features: RawFeatures,
    comments: &'s FileComments<'s>,
    /// Path in the comments.
    path: Vec<i32>,
}

impl<'r, 'a> Linker<'r, 'a> {
    /// Links all files.
    pub(super) fn link(files: &'r [RawFile<'a>]) -> Result<TypePool, DescriptorError> {
        let mut linker = Self::default();
        for file in files {
            linker.declare_file(file)?;
        }
        linker.declare_well_known();
        linker.resolve();
        Ok(linker.pool)
    }

    fn declare_file(&mut self, file: &'r RawFile<'a>) -> Result<(), DescriptorError> {
        let comments = FileComments::new(&file.comments);
        let scope = Scope {
            name: file.package,
            features: file.features.or(defaults(file)),
            comments: &comments,
            path: Vec::new(),
        };
        for (index, message) in (0..).zip(&file.messages) {
            self.declare_message(message, &scope, [4, index])?;
        }
        for (index, enumeration) in (0..).zip(&file.enums) {
            self.declare_enum(enumeration, &scope, [5, index])?;
        }
        self.declare_extensions(&file.extensions, &scope, 7);
        Ok(())
    }

    /// Recursion ends at the nesting that the reader allows.
    fn declare_message(
        &mut self,
        raw: &'r RawMessage<'a>,
        outer: &Scope<'_>,
        step: [i32; 2],
    ) -> Result<(), DescriptorError> {
        let full_name = joined(outer.name, raw.name);
        let scope = Scope {
            name: &full_name,
            features: raw.features.or(outer.features),
            comments: outer.comments,
            path: [outer.path.as_slice(), &step].concat(),
        };
        let message = MessageType {
            full_name: full_name.as_str().into(),
            known: WellKnown::of(&full_name),
            is_map_entry: raw.is_map_entry,
            oneofs: raw
                .oneofs
                .iter()
                .map(|name| Oneof { name: (*name).into(), fields: Vec::new() })
                .collect(),
            comment: scope.comments.at(&scope.path, &[]).into(),
            ..MessageType::default()
        };
        let id = TypeId::Message(self.pool.messages.len() as u32);
        self.name(&message.full_name, id)?;
        self.pool.messages.push(message);
        let comments = (0..raw.fields.len() as i32)
            .map(|index| scope.comments.at(&scope.path, &[2, index]).into())
            .collect();
        self.open.push(OpenMessage { raw, features: scope.features, comments });
        for (index, message) in (0..).zip(&raw.messages) {
            self.declare_message(message, &scope, [3, index])?;
        }
        for (index, enumeration) in (0..).zip(&raw.enums) {
            self.declare_enum(enumeration, &scope, [4, index])?;
        }
        self.declare_extensions(&raw.extensions, &scope, 6);
        Ok(())
    }

    fn declare_enum(
        &mut self,
        raw: &RawEnum<'a>,
        outer: &Scope<'_>,
        step: [i32; 2],
    ) -> Result<(), DescriptorError> {
        let full_name = joined(outer.name, raw.name);
        let path = [outer.path.as_slice(), &step].concat();
        let values = (0..).zip(&raw.values).map(|(index, value)| EnumValue {
            name: value.name.into(),
            number: value.number,
            is_deprecated: value.is_deprecated,
            comment: outer.comments.at(&path, &[2, index]).into(),
        });
        let mut enumeration = EnumType {
            values: values.collect(),
            is_null: full_name == NULL_VALUE,
            is_closed: raw.features.or(outer.features).enum_type == CLOSED,
            comment: outer.comments.at(&path, &[]).into(),
            full_name: full_name.into(),
            ..EnumType::default()
        };
        enumeration.index();
        self.name(&enumeration.full_name, TypeId::Enum(self.pool.enums.len() as u32))?;
        self.pool.enums.push(enumeration);
        Ok(())
    }

    fn declare_extensions(&mut self, raw: &'r [RawField<'a>], scope: &Scope<'_>, member: i32) {
        for (index, raw) in (0..).zip(raw) {
            self.extensions.push(OpenExtension {
                raw,
                scope: scope.name.to_owned(),
                features: scope.features,
                comment: scope.comments.at(&scope.path, &[member, index]).into(),
            });
        }
    }

    fn name(&mut self, full_name: &Arc<str>, id: TypeId) -> Result<(), DescriptorError> {
        match self.pool.names.entry(full_name.clone()) {
            Entry::Vacant(entry) => _ = entry.insert(id),
            Entry::Occupied(_) => return Err(DescriptorError::Duplicate(full_name.to_string())),
        }
        Ok(())
    }

    /// Declares the well-known types that the files leave out: their representation needs no descriptor.
    fn declare_well_known(&mut self) {
        for (name, known) in WellKnown::ALL {
            let index = self.pool.messages.len() as u32;
            if let Entry::Vacant(entry) = self.pool.names.entry(name.into()) {
                entry.insert(TypeId::Message(index));
                let known = Some(known);
                self.pool.messages.push(MessageType {
                    full_name: name.into(),
                    known,
                    ..MessageType::default()
                });
            }
        }
        let index = self.pool.enums.len() as u32;
        if let Entry::Vacant(entry) = self.pool.names.entry(NULL_VALUE.into()) {
            entry.insert(TypeId::Enum(index));
            let full_name = NULL_VALUE.into();
            self.pool.enums.push(EnumType { full_name, is_null: true, ..EnumType::default() });
        }
    }

    fn resolve(&mut self) {
        for (index, open) in std::mem::take(&mut self.open).into_iter().enumerate() {
            self.resolve_message(index, open);
        }
        let mut numbers: HashMap<u32, HashSet<u32>> = HashMap::new();
        for open in std::mem::take(&mut self.extensions) {
            let Some(TypeId::Message(extendee)) = self.pool.find(open.raw.extendee, &open.scope) else {
                continue;
            };
            let Ok(mut field) = self.field(open.raw, &open.scope, open.features) else { continue };
            field.json_name = format!("[{}]", joined(&open.scope, open.raw.name)).into();
            field.comment = open.comment;
            field.oneof = None;
            let message = &mut self.pool.messages[extendee as usize];
            let own = || message.fields.iter().map(|own| own.number).collect();
            if numbers.entry(extendee).or_insert_with(own).insert(field.number) {
                message.fields.push(field);
            }
        }
        self.resolve_maps();
        self.pool.messages.iter_mut().for_each(MessageType::index);
    }

    fn resolve_message(&mut self, index: usize, open: OpenMessage<'_, 'a>) {
        let full_name = self.pool.messages[index].full_name.clone();
        let mut fields = Vec::with_capacity(open.raw.fields.len());
        let mut fault = None;
        for (raw, comment) in open.raw.fields.iter().zip(open.comments) {
            match self.field(raw, &full_name, open.features) {
                Ok(field) => fields.push(MessageField { comment, ..field }),
                Err(problem) => fault = fault.or(Some(problem)),
            }
        }
        let message = &mut self.pool.messages[index];
        for (index, field) in (0..).zip(&mut fields) {
            match field.oneof.and_then(|oneof| message.oneofs.get_mut(oneof as usize)) {
                Some(oneof) => oneof.fields.push(index),
                None => field.oneof = None,
            }
        }
        message.fields = fields;
        message.fault = fault.map(String::into_boxed_str);
    }

    /// Makes maps of repeated entries.
    fn resolve_maps(&mut self) {
        let mut entries: HashMap<u32, (FieldKind, FieldKind)> = HashMap::new();
        for (index, message) in (0..).zip(&self.pool.messages) {
            if let [key, value] = message.fields.as_slice()
                && (key.number, value.number) == (1, 2)
                && message.is_map_entry
                && key.kind.can_be_key()
                && [key, value].into_iter().all(|field| field.cardinality == Cardinality::Single)
                && message.fault.is_none()
            {
                entries.insert(index, (key.kind, value.kind));
            }
        }
        for field in self.pool.messages.iter_mut().flat_map(|message| &mut message.fields) {
            if let FieldKind::Message(message) | FieldKind::Group(message) = field.kind
                && field.cardinality == Cardinality::Repeated
                && let Some((key, value)) = entries.get(&message)
            {
                (field.cardinality, field.kind) = (Cardinality::Map(*key), *value);
            }
        }
    }

    fn field(&self, raw: &RawField<'_>, scope: &str, outer: RawFeatures) -> Result<MessageField, String> {
        let features = raw.features.or(outer);
        let full_name = joined(scope, raw.name);
        let kind = self.kind(raw, scope, features)?;
        let number = Some(raw.number).filter(|number| (1..=MAX_FIELD).contains(number));
        let number = number.ok_or_else(|| format!("`{full_name}` has an invalid field number"))?;
        let is_repeated = raw.label == 3;
        let is_message = kind.message().is_some();
        let packed = raw.packed.unwrap_or(features.repeated_encoding == PACKED);
        let behaves = |behavior| raw.behavior.contains(&behavior);
        Ok(MessageField {
            json_name: match raw.json_name {
                "" => json_name(raw.name).into(),
                name => name.into(),
            },
            name: raw.name.into(),
            number: number as u32,
            kind,
            cardinality: if is_repeated { Cardinality::Repeated } else { Cardinality::Single },
            is_packed: is_repeated && packed && kind.can_be_packed(),
            has_presence: is_message
                || raw.is_proto3_optional
                || raw.oneof.is_some()
                || !raw.extendee.is_empty()
                || features.field_presence != IMPLICIT,
            is_required: raw.label == 2 || (features.field_presence == LEGACY_REQUIRED && !is_repeated),
            must_be_sent: behaves(REQUIRED) && !behaves(OUTPUT_ONLY) && raw.oneof.is_none(),
            is_output_only: behaves(OUTPUT_ONLY),
            is_deprecated: raw.is_deprecated,
            oneof: raw.oneof.filter(|_| !raw.is_proto3_optional).and_then(|oneof| u32::try_from(oneof).ok()),
            default: raw.default.map(Into::into),
            comment: Box::default(),
        })
    }

    fn kind(&self, raw: &RawField<'_>, scope: &str, features: RawFeatures) -> Result<FieldKind, String> {
        let scalar = match raw.kind {
            1 => FieldKind::Double,
            2 => FieldKind::Float,
            3 => FieldKind::Int64,
            4 => FieldKind::Uint64,
            5 => FieldKind::Int32,
            6 => FieldKind::Fixed64,
            7 => FieldKind::Fixed32,
            8 => FieldKind::Bool,
            9 => FieldKind::Text,
            12 => FieldKind::Bytes,
            13 => FieldKind::Uint32,
            15 => FieldKind::Sfixed32,
            16 => FieldKind::Sfixed64,
            17 => FieldKind::Sint32,
            18 => FieldKind::Sint64,
            0 | 10 | 11 | 14 => {
                let full_name = joined(scope, raw.name);
                return match (self.pool.find(raw.type_name, scope), raw.kind) {
                    (Some(TypeId::Message(message)), 10) => Ok(FieldKind::Group(message)),
                    (Some(TypeId::Message(message)), 0 | 11) if features.message_encoding == DELIMITED => {
                        Ok(FieldKind::Group(message))
                    }
                    (Some(TypeId::Message(message)), 0 | 11) => Ok(FieldKind::Message(message)),
                    (Some(TypeId::Enum(enumeration)), 0 | 14) => Ok(FieldKind::Enum(enumeration)),
                    (Some(_), _) => Err(format!("`{}` of `{full_name}` is of another kind", raw.type_name)),
                    (None, _) => {
                        let name = raw.type_name.trim_start_matches('.');
                        Err(format!("the type `{name}` of `{full_name}` is not in the descriptors"))
                    }
                };
            }
            kind => return Err(format!("`{}` has the unknown type {kind}", joined(scope, raw.name))),
        };
        Ok(scalar)
    }
}

/// Returns the features that a file begins with.
fn defaults(file: &RawFile<'_>) -> RawFeatures {
    let (field_presence, enum_type, repeated_encoding) = match file.syntax {
        "proto3" => (IMPLICIT, OPEN, PACKED),
        "editions" => (EXPLICIT, OPEN, PACKED),
        _ if file.edition >= 1000 => (EXPLICIT, OPEN, PACKED),
        _ => (EXPLICIT, CLOSED, EXPANDED),
    };
    RawFeatures { field_presence, enum_type, repeated_encoding, message_encoding: LENGTH_PREFIXED }
}

/// Returns the full name of a declaration.
pub(super) fn joined(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

/// Returns the name in JSON of a field without one in its descriptor, as protoc makes it.
fn json_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut is_upper = false;
    for c in name.chars() {
        match c {
            '_' => is_upper = true,
            _ if is_upper => {
                out.push(c.to_ascii_uppercase());
                is_upper = false;
            }
            _ => out.push(c),
        }
    }
    out
}
