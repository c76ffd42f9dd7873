//! The common setters of the definitions of tools, prompts and resources.

/// Writes setters into an `impl`, each with the doc comment that precedes it:
///
/// - `text title;` sets the field `title`, an `Option<String>`;
/// - `some annotations: Annotations;` sets the field `annotations`, an `Option<Annotations>`;
/// - `icon;` adds an icon to `icons`;
/// - `meta;` adds a member to `meta`;
/// - `cache;` sets `cache`, a [`CachePolicy`](crate::CachePolicy).
macro_rules! setters {
    () => {};
    ($(#[$doc:meta])* text $field:ident; $($more:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl Into<String>) -> Self {
            self.$field = Some($field.into());
            self
        }

        $crate::setters::setters! { $($more)* }
    };
    ($(#[$doc:meta])* some $field:ident: $kind:ty; $($more:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            self.$field = Some($field);
            self
        }

        $crate::setters::setters! { $($more)* }
    };
    ($(#[$doc:meta])* icon; $($more:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn icon(mut self, icon: $crate::Icon) -> Self {
            self.icons.push(icon);
            self
        }

        $crate::setters::setters! { $($more)* }
    };
    ($(#[$doc:meta])* meta; $($more:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn meta(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
            self.meta.insert(name.into(), value.into());
            self
        }

        $crate::setters::setters! { $($more)* }
    };
    ($(#[$doc:meta])* cache; $($more:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub const fn cache(mut self, ttl: std::time::Duration, scope: $crate::CacheScope) -> Self {
            self.cache = $crate::CachePolicy { ttl, scope };
            self
        }

        $crate::setters::setters! { $($more)* }
    };
}

pub(crate) use setters;
