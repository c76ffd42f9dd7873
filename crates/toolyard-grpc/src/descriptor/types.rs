//! Message and enum types with resolved references.

use std::collections::HashMap;
use std::sync::Arc;

use super::link::joined;

/// All types of a set of descriptors.
#[derive(Debug, Default)]
pub(super) struct TypePool {
    pub(super) messages: Vec<MessageType>,
    pub(super) enums: Vec<EnumType>,
    pub(super) names: HashMap<Arc<str>, TypeId>,
}

/// A position in a [`TypePool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TypeId {
    Message(u32),
    Enum(u32),
}

/// A message type.
#[derive(Debug, Default)]
pub(super) struct MessageType {
    pub(super) full_name: Arc<str>,
    /// The type, if JSON represents it in a way of its own.
    pub(super) known: Option<WellKnown>,
    /// Its fields and extensions, in the order of their declaration.
    pub(super) fields: Vec<MessageField>,
    /// Fields by number, and by both of their names.
    pub(super) by_number: Box<[u32]>,
    pub(super) by_json_name: Box<[u32]>,
    pub(super) by_name: Box<[u32]>,
    /// Its oneofs, without those of proto3's optional fields.
    pub(super) oneofs: Vec<Oneof>,
    /// The reason why it cannot be used.
    pub(super) fault: Option<Box<str>>,
    /// True if each message has a value for some fields.
    pub(super) has_required: bool,
    /// True for the entries of a map.
    pub(super) is_map_entry: bool,
    pub(super) comment: Box<str>,
}

#[derive(Debug)]
pub(super) struct Oneof {
    pub(super) name: Box<str>,
    /// Its fields, by index.
    pub(super) fields: Vec<u32>,
}

/// A field or an extension.
#[derive(Debug)]
pub(super) struct MessageField {
    pub(super) name: Box<str>,
    /// Name in JSON; `[package.name]` of an extension.
    pub(super) json_name: Box<str>,
    pub(super) number: u32,
    /// Kind of its values; of a map, of those of its entries.
    pub(super) kind: FieldKind,
    pub(super) cardinality: Cardinality,
    /// True if a repeated field is written as one value.
    pub(super) is_packed: bool,
    /// True if a default value differs from none.
    pub(super) has_presence: bool,
    /// `required` of proto2, without which a message is invalid.
    pub(super) is_required: bool,
    /// `REQUIRED` of `google.api.field_behavior`.
    pub(super) must_be_sent: bool,
    /// `OUTPUT_ONLY` of `google.api.field_behavior`.
    pub(super) is_output_only: bool,
    pub(super) is_deprecated: bool,
    pub(super) oneof: Option<u32>,
    pub(super) default: Option<Box<str>>,
    pub(super) comment: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cardinality {
    Single,
    Repeated,
    /// A map, with the kind of its keys.
    Map(FieldKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Bool,
    Text,
    Bytes,
    Enum(u32),
    Message(u32),
    /// A message between tags instead of after its length.
    Group(u32),
}

impl FieldKind {
    /// Returns the message type of its values.
    pub(super) const fn message(self) -> Option<u32> {
        match self {
            Self::Message(message) | Self::Group(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the type that it refers to.
    pub(super) const fn type_id(self) -> Option<TypeId> {
        match self {
            Self::Message(message) | Self::Group(message) => Some(TypeId::Message(message)),
            Self::Enum(enumeration) => Some(TypeId::Enum(enumeration)),
            _ => None,
        }
    }

    pub(super) const fn can_be_packed(self) -> bool {
        !matches!(self, Self::Text | Self::Bytes | Self::Message(_) | Self::Group(_))
    }

    /// Returns true if values can be keys of a map.
    pub(super) const fn can_be_key(self) -> bool {
        !matches!(
            self,
            Self::Double | Self::Float | Self::Bytes | Self::Enum(_) | Self::Message(_) | Self::Group(_)
        )
    }
}

/// An enum type.
#[derive(Debug, Default)]
pub(super) struct EnumType {
    pub(super) full_name: Arc<str>,
    pub(super) values: Vec<EnumValue>,
    /// Values by name, and by number (the first one of several with a number).
    pub(super) by_name: Box<[u32]>,
    pub(super) by_number: Box<[u32]>,
    /// True for `google.protobuf.NullValue`, which is `null` in JSON.
    pub(super) is_null: bool,
    /// True if numbers without a name are no values.
    pub(super) is_closed: bool,
    pub(super) comment: Box<str>,
}

#[derive(Debug)]
pub(super) struct EnumValue {
    pub(super) name: Box<str>,
    pub(super) number: i32,
    pub(super) is_deprecated: bool,
    pub(super) comment: Box<str>,
}

/// The types with a representation of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WellKnown {
    Any,
    Timestamp,
    Duration,
    FieldMask,
    Struct,
    Value,
    ListValue,
    /// A wrapper of a value of this kind.
    Wrapper(FieldKind),
    Empty,
}

impl WellKnown {
    pub(super) const ALL: [(&str, Self); 17] = [
        ("google.protobuf.Any", Self::Any),
        ("google.protobuf.Timestamp", Self::Timestamp),
        ("google.protobuf.Duration", Self::Duration),
        ("google.protobuf.FieldMask", Self::FieldMask),
        ("google.protobuf.Struct", Self::Struct),
        ("google.protobuf.Value", Self::Value),
        ("google.protobuf.ListValue", Self::ListValue),
        ("google.protobuf.DoubleValue", Self::Wrapper(FieldKind::Double)),
        ("google.protobuf.FloatValue", Self::Wrapper(FieldKind::Float)),
        ("google.protobuf.Int64Value", Self::Wrapper(FieldKind::Int64)),
        ("google.protobuf.UInt64Value", Self::Wrapper(FieldKind::Uint64)),
        ("google.protobuf.Int32Value", Self::Wrapper(FieldKind::Int32)),
        ("google.protobuf.UInt32Value", Self::Wrapper(FieldKind::Uint32)),
        ("google.protobuf.BoolValue", Self::Wrapper(FieldKind::Bool)),
        ("google.protobuf.StringValue", Self::Wrapper(FieldKind::Text)),
        ("google.protobuf.BytesValue", Self::Wrapper(FieldKind::Bytes)),
        ("google.protobuf.Empty", Self::Empty),
    ];

    pub(super) fn of(full_name: &str) -> Option<Self> {
        let short = full_name.strip_prefix("google.protobuf.")?;
        Self::ALL
            .iter()
            .find(|(name, _)| name.ends_with(short) && *name == full_name)
            .map(|(_, known)| *known)
    }

    /// Returns true if JSON represents it as an object in every case.
    pub(super) const fn is_object(self) -> bool {
        matches!(self, Self::Any | Self::Struct | Self::Empty)
    }
}

impl TypePool {
    pub(super) fn message(&self, index: u32) -> &MessageType {
        &self.messages[index as usize]
    }

    pub(super) fn enumeration(&self, index: u32) -> &EnumType {
        &self.enums[index as usize]
    }

    /// Finds a type by its full name after a dot, or else from the innermost scope outwards.
    pub(super) fn find(&self, name: &str, scope: &str) -> Option<TypeId> {
        if let Some(full_name) = name.strip_prefix('.') {
            return self.names.get(full_name).copied();
        }
        let mut scope = scope;
        loop {
            if let Some(id) = self.names.get(joined(scope, name).as_str()) {
                return Some(*id);
            }
            if scope.is_empty() {
                return None;
            }
            scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
    }

    /// Finds a message type by its full name.
    pub(super) fn message_named(&self, full_name: &str) -> Option<u32> {
        match self.names.get(full_name)? {
            TypeId::Message(index) => Some(*index),
            TypeId::Enum(_) => None,
        }
    }

    /// Drops the comments, which only schemas need.
    pub(super) fn drop_comments(&mut self) {
        for message in &mut self.messages {
            message.comment = Box::default();
            message.fields.iter_mut().for_each(|field| field.comment = Box::default());
        }
        for enumeration in &mut self.enums {
            enumeration.comment = Box::default();
            enumeration.values.iter_mut().for_each(|value| value.comment = Box::default());
        }
    }
}

impl MessageType {
    /// Finds a field by its number.
    pub(super) fn field_numbered(&self, number: u32) -> Option<usize> {
        // Most messages number their fields from one on.
        let guess = (number as usize).wrapping_sub(1);
        if self.fields.get(guess).is_some_and(|field| field.number == number) {
            return Some(guess);
        }
        let field = |index: &u32| self.fields[*index as usize].number;
        let at = self.by_number.binary_search_by_key(&number, field).ok()?;
        Some(self.by_number[at] as usize)
    }

    /// Finds a field by its name in JSON, or else by its own name.
    pub(super) fn field_named(&self, name: &str) -> Option<usize> {
        let find = |order: &[u32], of: fn(&MessageField) -> &str| {
            let at = order.binary_search_by(|index| of(&self.fields[*index as usize]).cmp(name)).ok()?;
            Some(order[at] as usize)
        };
        find(&self.by_json_name, |field| &field.json_name)
            .or_else(|| find(&self.by_name, |field| &field.name))
    }

    /// Sorts the fields for lookups.
    pub(super) fn index(&mut self) {
        let fields = &self.fields;
        let order = || (0..fields.len() as u32).collect::<Vec<_>>();
        let (mut by_number, mut by_json_name, mut by_name) = (order(), order(), order());
        by_number.sort_by_key(|index| fields[*index as usize].number);
        by_json_name.sort_by_key(|index| &fields[*index as usize].json_name);
        by_name.retain(|index| !fields[*index as usize].json_name.starts_with('['));
        by_name.sort_by_key(|index| &fields[*index as usize].name);
        self.by_number = by_number.into();
        self.by_json_name = by_json_name.into();
        self.by_name = by_name.into();
        self.has_required = fields.iter().any(|field| field.is_required || field.must_be_sent);
    }
}

impl EnumType {
    /// Finds a number by its name.
    pub(super) fn number(&self, name: &str) -> Option<i32> {
        let of = |index: &u32| &*self.values[*index as usize].name;
        let at = self.by_name.binary_search_by(|index| of(index).cmp(name)).ok()?;
        Some(self.values[self.by_name[at] as usize].number)
    }

    /// Finds the first name of a number.
    pub(super) fn name(&self, number: i32) -> Option<&str> {
        let of = |index: &u32| self.values[*index as usize].number;
        let at = self.by_number.binary_search_by_key(&number, of).ok()?;
        Some(&self.values[self.by_number[at] as usize].name)
    }

    /// Sorts the values for lookups.
    pub(super) fn index(&mut self) {
        let values = &self.values;
        let order = || (0..values.len() as u32).collect::<Vec<_>>();
        let (mut by_name, mut by_number) = (order(), order());
        by_name.sort_by_key(|index| &values[*index as usize].name);
        by_number.sort_by_key(|index| values[*index as usize].number);
        by_number.dedup_by_key(|index| values[*index as usize].number);
        self.by_name = by_name.into();
        self.by_number = by_number.into();
    }
}
