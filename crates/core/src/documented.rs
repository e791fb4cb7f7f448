//! Declarations that keep their docstrings, so that pages of documentation can be made of them.

/// A field, a variant of an enumeration, or a field of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Documented {
    /// The name in the source.
    pub name: &'static str,
    /// The name of its type; empty for a variant.
    pub kind: &'static str,
    /// Its docstring, on one line.
    pub prose: &'static str,
    /// The fields of a variant.
    pub fields: &'static [Documented],
}

/// Declares structures with `FIELDS`, and enumerations with `VARIANTS`: what they have, as
/// [`Documented`].
///
/// ```
/// airtcp_core::documented! {
///     /// What happened.
///     #[derive(Default)]
///     pub struct Counters {
///         /// Segments sent.
///         pub sent: u64,
///     }
/// }
/// assert_eq!(Counters::FIELDS[0].name, "sent");
/// assert_eq!(Counters::FIELDS[0].prose, "Segments sent.");
/// ```
#[macro_export]
macro_rules! documented {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($derive:tt)*)])?
        pub struct $name:ident {
            $(
                $(#[doc = $prose:literal])*
                $(#[serde($($serde:tt)*)])?
                pub $field:ident: $kind:ty,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        $(#[derive($($derive)*)])?
        pub struct $name {
            $(
                $(#[doc = $prose])*
                $(#[serde($($serde)*)])?
                pub $field: $kind,
            )*
        }

        impl $name {
            /// The fields, in the order of the declaration.
            pub const FIELDS: &'static [$crate::documented::Documented] = &[$(
                $crate::__documented!($field, stringify!($kind), [$($prose)*], []),
            )*];
        }
    };
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($derive:tt)*)])?
        pub enum $name:ident {
            $(
                $(#[doc = $prose:literal])*
                $variant:ident $({
                    $(
                        $(#[doc = $part_prose:literal])*
                        $part:ident: $kind:ty,
                    )*
                })?,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        $(#[derive($($derive)*)])?
        pub enum $name {
            $(
                $(#[doc = $prose])*
                $variant $({
                    $(
                        $(#[doc = $part_prose])*
                        $part: $kind,
                    )*
                })?,
            )*
        }

        impl $name {
            /// The variants, in the order of the declaration.
            pub const VARIANTS: &'static [$crate::documented::Documented] = &[$(
                $crate::__documented!($variant, "", [$($prose)*], [$($(
                    $crate::__documented!($part, stringify!($kind), [$($part_prose)*], []),
                )*)?]),
            )*];
        }
    };
}

/// Declares counters: a structure with its fields as [`documented!`](crate::documented!), and with
/// their values by name.
#[macro_export]
macro_rules! counters {
    (
        $(#[doc = $doc:literal])*
        #[derive($($derive:tt)*)]
        pub struct $name:ident {
            $($(#[doc = $prose:literal])* pub $field:ident: u64,)*
        }
    ) => {
        $crate::documented! {
            $(#[doc = $doc])*
            #[derive($($derive)*)]
            pub struct $name {
                $($(#[doc = $prose])* pub $field: u64,)*
            }
        }

        impl $name {
            /// The counters by their names.
            pub fn by_name(self) -> ::std::collections::BTreeMap<&'static str, u64> {
                ::std::collections::BTreeMap::from([$((stringify!($field), self.$field)),*])
            }
        }
    };
}

/// Expands to one [`Documented`].
#[doc(hidden)]
#[macro_export]
macro_rules! __documented {
    ($name:ident, $kind:expr, [$($prose:literal)*], [$($fields:tt)*]) => {
        $crate::documented::Documented {
            name: stringify!($name),
            kind: $kind,
            prose: concat!($($prose),*).trim_ascii(),
            fields: &[$($fields)*],
        }
    };
}
