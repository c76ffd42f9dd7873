//! Sections of the process document. The macro `section!` declares the fields of one, each in one place.

use std::marker::PhantomData;

use serde_json::{Value, json};

use crate::{
    cursor::ValueCursor,
    field_type::FieldType,
    fields::ObjectFields,
    object_schema::{ObjectSchema, SchemaDefinitions},
};

/// An object of the process document with fixed fields.
pub(crate) trait Section: Sized {
    /// The name of the object in the definitions of the schema.
    const NAME: &'static str;

    /// Reads the fields. The caller then calls [`ObjectFields::finish`].
    fn read(fields: &mut ObjectFields<'_>) -> Option<Self>;

    /// Adds the fields to the schema of the object.
    fn describe(object: &mut ObjectSchema<'_>);
}

/// Declares a section of the process document: its struct, its reader and its schema, of which `cargo xtask reference`
/// makes the tables of `docs/manifest.md`.
///
/// ```ignore
/// section! {
///     /// `cache` of a `Toolyard` document: what is kept of the results of tools.
///     #[derive(Clone, Debug, PartialEq, Eq)]
///     pub struct CacheSettings: Default = "cache" {
///         /// Maximum size of all results together, at least 4 KiB.
///         ///
///         /// The results of an hour, of most servers.
///         pub max_bytes: usize = "maxBytes", SizeField(4 << 10), default 64 << 20;
///         /// File in which results survive a restart. Default: none.
///         pub file: Option<PathBuf> = "file", FileField, optional;
///     }
/// }
/// ```
///
/// - After the name of the struct stand `: Default`, unless a field is required, and the name of the object in the
///   definitions of the schema.
/// - The first paragraph of a doc comment is also the description in the schema and in `docs/manifest.md`. A second one
///   has the reason for the default.
/// - A field has a name in documents, a [`FieldType`], and one of:
///   - `default VALUE`, which the schema contains,
///   - `described VALUE`, which the doc comment describes and which may be computed from the fields above,
///   - `optional`, for an `Option`,
///   - `required`.
/// - `+ { pub name: Type, }` adds fields that are not read, and have the default of their type.
macro_rules! section {
    ($(#[$attribute:meta])* $visibility:vis struct $Section:ident: Default = $($rest:tt)+) => {
        $crate::section::section! { $(#[$attribute])* $visibility struct $Section = $($rest)+ }
        $crate::section::section! { @impl_default $Section $($rest)+ }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Section:ident = $section_name:literal {
            $(
                $(#[doc = $doc:literal])+
                $field_visibility:vis $field:ident: $type:ty =
                    $name:literal, $kind:expr, $presence:ident $($value:expr)?;
            )+
        }
        $(+ { $($(#[$extra_attribute:meta])+ $extra_visibility:vis $extra:ident: $extra_type:ty,)+ })?
    ) => {
        $(#[$attribute])*
        $visibility struct $Section {
            $(
                #[doc = concat!("`", $name, "`:")]
                $(#[doc = $doc])+
                $(#[doc = ""] #[doc = concat!("Default: `", stringify!($value), "`.")])?
                $field_visibility $field: $type,
            )+
            $($($(#[$extra_attribute])+ $extra_visibility $extra: $extra_type,)+)?
        }

        impl $crate::section::Section for $Section {
            const NAME: &'static str = $section_name;

            fn read(fields: &mut $crate::fields::ObjectFields<'_>) -> Option<Self> {
                $(
                    let $field =
                        $crate::section::section! { @read $presence fields, $name, $kind $(, $value)? };
                )+
                Some(Self {
                    $($field: $crate::section::section! { @unwrap $presence $field },)+
                    $($($extra: Default::default(),)+)?
                })
            }

            fn describe(object: &mut $crate::object_schema::ObjectSchema<'_>) {
                $($crate::section::section! {
                    @describe $presence object, $name, &[$($doc),+], $kind $(, $value)?
                })+
            }
        }
    };
    (
        @impl_default $Section:ident $section_name:literal {
            $(
                $(#[doc = $doc:literal])+
                $field_visibility:vis $field:ident: $type:ty =
                    $name:literal, $kind:expr, $presence:ident $($value:expr)?;
            )+
        }
        $(+ { $($(#[$extra_attribute:meta])+ $extra_visibility:vis $extra:ident: $extra_type:ty,)+ })?
    ) => {
        impl Default for $Section {
            fn default() -> Self {
                $(let $field: $type = $crate::section::section! { @absent $presence $($value)? };)+
                Self { $($field,)+ $($($extra: Default::default(),)+)? }
            }
        }
    };

    // The value of an absent field.
    (@absent default $value:expr) => { $value };
    (@absent described $value:expr) => { $value };
    (@absent optional) => { None };
    (@absent required) => { compile_error!("a section with a required field has no `Default`") };

    // An expression that reads a field. A required one is read as an `Option`.
    (@read default $fields:ident, $name:literal, $kind:expr, $value:expr) => {
        $fields.with_default($name, |cursor| $crate::field_type::FieldType::read(&$kind, cursor), $value)
    };
    (@read described $($rest:tt)+) => { $crate::section::section! { @read default $($rest)+ } };
    (@read optional $fields:ident, $name:literal, $kind:expr) => {
        $fields.optional($name, |cursor| $crate::field_type::FieldType::read(&$kind, cursor))
    };
    (@read required $fields:ident, $name:literal, $kind:expr) => {
        $fields.required($name, |cursor| $crate::field_type::FieldType::read(&$kind, cursor))
    };

    // The value of a field that was read.
    (@unwrap required $field:ident) => { $field? };
    (@unwrap $presence:ident $field:ident) => { $field };

    // A statement that adds a field to the schema.
    (@describe default $object:ident, $name:literal, $docs:expr, $kind:expr, $value:expr) => {
        $object.field_with_default($name, $docs, &$kind, &$value);
    };
    (@describe described $object:ident, $name:literal, $docs:expr, $kind:expr, $value:expr) => {
        $object.field($name, $docs, &$kind);
    };
    (@describe optional $object:ident, $name:literal, $docs:expr, $kind:expr) => {
        $object.field($name, $docs, &$kind);
    };
    (@describe required $object:ident, $name:literal, $docs:expr, $kind:expr) => {
        $object.required_field($name, $docs, &$kind);
    };

    (@$step:ident $presence:ident $($rest:tt)*) => {
        compile_error!(concat!(
            "`", stringify!($presence), "` is none of `default VALUE`, `described VALUE`, `optional` and `required`"
        ))
    };
}

pub(crate) use section;

/// Returns the type of a field that holds a section.
pub(crate) const fn nested<T: Section>() -> NestedField<T> {
    NestedField(PhantomData)
}

/// Returns the type of a field that holds a section which `enabled: false` switches off.
pub(crate) const fn switchable<T: Section>() -> SwitchableField<T> {
    SwitchableField(PhantomData)
}

/// A section as the value of a field.
pub(crate) struct NestedField<T>(PhantomData<T>);

impl<T: Section> FieldType for NestedField<T> {
    type Value = T;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<T> {
        let mut fields = cursor.fields()?;
        let section = T::read(&mut fields);
        fields.finish();
        section
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        definitions.object(T::NAME, T::describe)
    }
}

/// A section with the additional field `enabled`, which is `None` if that is false.
pub(crate) struct SwitchableField<T>(PhantomData<T>);

impl<T: Section> FieldType for SwitchableField<T> {
    type Value = Option<T>;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<Option<T>> {
        let mut fields = cursor.fields()?;
        let enabled = read_enabled(&mut fields);
        let section = T::read(&mut fields);
        fields.finish();
        section.map(|section| enabled.then_some(section))
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        definitions.object(T::NAME, |object| {
            describe_enabled(object);
            T::describe(object);
        })
    }
}

/// A section with nothing but the field `enabled`. The text is its name in the definitions of the schema.
pub(crate) struct SwitchField(pub(crate) &'static str);

impl FieldType for SwitchField {
    type Value = bool;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<bool> {
        let mut fields = cursor.fields()?;
        let enabled = read_enabled(&mut fields);
        fields.finish();
        Some(enabled)
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        definitions.object(self.0, describe_enabled)
    }
}

fn read_enabled(fields: &mut ObjectFields<'_>) -> bool {
    fields.with_default("enabled", ValueCursor::flag, true)
}

fn describe_enabled(object: &mut ObjectSchema<'_>) {
    object.property(
        "enabled",
        json!({"description": "Enable this group.", "default": true, "type": "boolean"}),
    );
}
