//! Structs and enums, declared with their keys.

use crate::reader::{Reader, Settings};
use crate::value::Value;

/// The key of a field: its name, with hyphens.
pub const fn kebab<const N: usize>(name: &str) -> [u8; N] {
    let mut key = [0; N];
    let mut i = 0;
    while i < N {
        let byte = name.as_bytes()[i];
        key[i] = if byte == b'_' { b'-' } else { byte };
        i += 1;
    }
    key
}

/// The value of a field of [`settings!`](crate::settings): as written, else as in `base`, else as
/// declared.
pub fn read<R: Reader, T: Value>(
    from: &R,
    key: &str,
    base: Option<&T>,
    default: Option<fn() -> T>,
) -> Option<T> {
    match (base, default) {
        (Some(base), _) if !from.written(key) => Some(base.clone()),
        (None, Some(default)) if !from.written(key) && !from.has_default(key) => Some(default()),
        _ => T::read(from, key, base),
    }
}

/// Settings as an inline table.
pub fn show_table(settings: &impl Settings) -> String {
    let mut keys = Vec::new();
    settings.write(&mut keys);
    let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// The first expression.
#[doc(hidden)]
#[macro_export]
macro_rules! __first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

/// The key of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! __key {
    ($field:ident $key:literal) => {
        $key
    };
    ($field:ident) => {{
        const NAME: &str = stringify!($field);
        const KEY: [u8; NAME.len()] = $crate::kebab(NAME);
        match ::core::str::from_utf8(&KEY) {
            Ok(key) => key,
            Err(_) => panic!("the name of a field is UTF-8"),
        }
    }};
}

/// The [`Fallback`](crate::schema::Fallback) of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! __fallback {
    ([$absent:expr] [$($default:expr)?] $kind:expr, $type:ty) => {
        $crate::schema::Fallback::Absent($absent)
    };
    ([] [$default:expr] $kind:expr, $type:ty) => {
        $crate::schema::Fallback::Value(|| {
            <$type as $crate::Value>::show(&$default, &$kind).unwrap_or_default()
        })
    };
    ([] [] $kind:expr, $type:ty) => {
        $crate::schema::Fallback::Required
    };
}

/// The declaration of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare {
    ([$part:ty] $($rest:tt)*) => {
        $crate::schema::Key::All(<$part as $crate::Settings>::KEYS)
    };
    (
        [] $field:ident $type:ty; [$($key:literal)?] [$($kind:expr)?] [$($absent:expr)?] [$($default:expr)?]
        [$($doc:literal)*] [$($like:expr)?] [$($source:expr)?] [$($choice:literal $words:expr)?] [$($end:expr)?]
    ) => {
        $crate::schema::Key::Fields(&[$crate::schema::Field {
            key: $crate::__key!($field $($key)?),
            kind: $crate::__first!($($like.kind,)? $($kind,)? <$type as $crate::Value>::KIND),
            fallback: $crate::__fallback!(
                [$($absent)?] [$($default)?]
                $crate::__first!($($like.kind,)? $($kind,)? <$type as $crate::Value>::KIND), $type
            ),
            meaning: $crate::__first!($($like.meaning,)? concat!($($doc),*).trim_ascii()),
            source: $crate::__first!($($like.source,)? $($source,)? ""),
            only: $crate::__first!(
                $($crate::schema::Conditions::one($choice, $words),)?
                $crate::schema::Conditions::NONE
            ),
            matters_to: $crate::__first!($(Some($end),)? $($like.matters_to,)? None),
            named_by: &[],
            is_essential: false,
        }])
    };
}

/// Reads a field.
#[doc(hidden)]
#[macro_export]
macro_rules! __read {
    ([$part:ty] $from:ident, $base:expr, $($rest:tt)*) => {
        <$part as $crate::Settings>::read($from, $base)
    };
    ([] $from:ident, $base:expr, $field:ident $type:ty, [$($key:literal)?] [$($default:expr)?]) => {
        $crate::read::<_, $type>(
            $from,
            $crate::__key!($field $($key)?),
            $base,
            $crate::__first!($(Some(|| $default),)? None),
        )
    };
}

/// Writes a field.
#[doc(hidden)]
#[macro_export]
macro_rules! __write {
    ([$part:ty] $to:ident, $field:ident $($rest:tt)*) => {
        $crate::Settings::write($field, $to)
    };
    ([] $to:ident, $field:ident $type:ty, [$($key:literal)?] [$($kind:expr)?] [$($like:expr)?]) => {
        $to.extend(
            $crate::Value::show(
                $field,
                &$crate::__first!($($like.kind,)? $($kind,)? <$type as $crate::Value>::KIND),
            )
            .map(|text| ($crate::__key!($field $($key)?), text)),
        )
    };
}

/// A pattern that binds the settings of a variant.
#[doc(hidden)]
#[macro_export]
macro_rules! __bind {
    ($name:ident $part:ty) => {
        $name
    };
}

/// The table of settings that have one, and how they are read as a key's value.
#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    ($type:ident [$($doc:literal)*]) => {};
    ($type:ident [$($doc:literal)*] $name:literal $($how:ident)?) => {
        impl $crate::InTable for $type {
            const TABLE: &'static $crate::schema::Table = &$crate::schema::Table::new(
                $name,
                concat!($($doc),*).trim_ascii(),
                <Self as $crate::Settings>::KEYS,
            )
            $(.$how())?;
        }
        impl $crate::Value for $type {
            const KIND: $crate::schema::Kind =
                $crate::schema::Kind::Table(<Self as $crate::InTable>::TABLE);
            fn read<R: $crate::Reader>(from: &R, key: &str, base: Option<&Self>) -> Option<Self> {
                <Self as $crate::Settings>::read(&from.table(key)?, base)
            }
            fn show(&self, _: &$crate::schema::Kind) -> Option<String> {
                Some($crate::show_table(self))
            }
        }
    };
}

/// A struct declared with its keys.
///
/// ```
/// # use airtcp_core::Duration;
/// # use airtcp_settings::{Settings, schema::POSITIVE_TIME, settings};
/// settings! {
///     /// Settings of the retransmission timer (RFC 6298).
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     #[table("tcp.rto")]
///     pub struct RtoConfig {
///         /// Time-out before the first RTT sample.
///         #[kind = POSITIVE_TIME]
///         #[source = "RFC 6298 §2.1"]
///         pub initial: Duration = Duration::from_secs(1),
///         /// Clock granularity G.
///         #[source = "RFC 6298 §2"]
///         pub granularity: Duration = Duration::ZERO,
///     }
/// }
/// assert_eq!(RtoConfig::default().initial, Duration::from_secs(1));
/// ```
///
/// Doc comments document both the struct and the file, so write them for both. The key is the
/// field's name with hyphens. A field may have, in this order:
///
/// - `#[keys_of(Type)]`: the keys of another such type stand among the struct's own, without a
///   table;
/// - `#[like(FIELD)]`: everything but key and default is as in a [`Field`] that several share;
/// - `#[key = "…"]`: a different key;
/// - `#[kind = KIND]`: narrower bounds than [`Value::KIND`] of its type;
/// - `#[absent = "…"]`: what the documentation says of an absent key, instead of the default's
///   text;
/// - `#[source = "…"]`: where the rule or the default comes from;
/// - `#[only("choice" in &["word"])]`: it has an effect only with these words of another key;
/// - `#[matters_to = "…"]`: see [`Field::matters_to`].
///
/// If every field has a default, the struct has [`Default`]; `#[partial]` in front of everything
/// says that some keys are required. `#[table("name")]` makes the struct the value of a key;
/// `#[table("name", whole)]` makes it a value that overrides another only [as a whole],
/// `#[table("name", by_preset)]` one that follows [a preset]. `#[check(function)]` names a
/// `fn<R: Reader>(&R, &Self)` that [refuses](crate::Reader::refuse) values that contradict each
/// other; the function gets the values that apply, once each of them is valid.
///
/// [`Value::KIND`]: crate::Value::KIND
/// [`Field`]: crate::schema::Field
/// [`Field::matters_to`]: crate::schema::Field::matters_to
/// [as a whole]: crate::schema::Table::whole
/// [a preset]: crate::schema::Table::by_preset
#[macro_export]
macro_rules! settings {
    (#[partial] $($declaration:tt)*) => {
        $crate::__settings! { $($declaration)* }
    };
    ($($declaration:tt)*) => {
        $crate::__settings! { $($declaration)* }
        $crate::__default! { $($declaration)* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __default {
    (
        $(#[$attribute:meta])*
        pub struct $Struct:ident {
            $(
                $(#[$field_attribute:meta])*
                pub $field:ident : $type:ty = $default:expr
            ),* $(,)?
        }
    ) => {
        impl Default for $Struct {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __settings {
    (
        $(#[doc = $about:literal])*
        $(#[derive($($derive:ident),* $(,)?)])?
        $(#[table($table:literal $(, $how:ident)?)])?
        $(#[check($check:path)])?
        pub struct $Struct:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[keys_of($part:ty)])?
                $(#[like($like:expr)])?
                $(#[key = $key:literal])?
                $(#[kind = $kind:expr])?
                $(#[absent = $absent:expr])?
                $(#[source = $source:expr])?
                $(#[only($choice:literal in $words:expr)])?
                $(#[matters_to = $end:expr])?
                pub $field:ident : $type:ty $(= $default:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        $(#[derive($($derive),*)])?
        pub struct $Struct {
            $(
                $(#[doc = $doc])*
                pub $field: $type,
            )*
        }

        impl $crate::Settings for $Struct {
            const KEYS: &'static [$crate::schema::Key] = &[$(
                $crate::__declare!(
                    [$($part)?] $field $type; [$($key)?] [$($kind)?] [$($absent)?] [$($default)?]
                    [$($doc)*] [$($like)?] [$($source)?] [$($choice $words)?] [$($end)?]
                )
            ),*];

            fn read<R: $crate::Reader>(from: &R, base: Option<&Self>) -> Option<Self> {
                $(
                    let $field = $crate::__read!(
                        [$($part)?] from, base.map(|base| &base.$field), $field $type,
                        [$($key)?] [$($default)?]
                    );
                )*
                let read = Self { $($field: $field?),* };
                $($check(from, &read);)?
                Some(read)
            }

            fn write(&self, to: &mut Vec<(&'static str, String)>) {
                let Self { $($field),* } = self;
                $(
                    $crate::__write!(
                        [$($part)?] to, $field $type, [$($key)?] [$($kind)?] [$($like)?]
                    );
                )*
            }
        }

        $crate::__table! { $Struct [$($about)*] $($table $($how)?)? }
    };
}

/// An enum declared with the key that chooses a variant, the variants' words, and the keys that
/// only one variant has.
///
/// ```
/// # use airtcp_core::Duration;
/// # use airtcp_settings::alternatives;
/// alternatives! {
///     /// The receiver's acknowledgement policy.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     #[table("tcp.ack")]
///     #[choice("policy", "The receiver's acknowledgement policy.")]
///     #[absent(AckConfig::Every)]
///     pub enum AckConfig {
///         /// each segment, at once
///         "every" => Every,
///         /// every `segments`-th full-sized segment or after `timeout`
///         "delayed" => Delayed {
///             /// Full-sized segments per ACK.
///             segments: u32 = 2,
///             /// Longest delay of an ACK.
///             timeout: Duration = Duration::from_millis(200),
///         },
///     }
/// }
/// ```
///
/// `#[choice]` may be followed by `#[absent(VALUE)]` (the variant whose word is the default) or
/// `#[absent_word("word")]` (the default, of a variant that has required keys; without either the
/// word is required), `#[source = "…"]` and `#[matters_to = "…"]`. Variants are plain, or
/// have fields as in [`settings!`], or one field in parentheses, `(name: Type)`, or all keys of
/// another such type, `(..Type)`.
#[macro_export]
macro_rules! alternatives {
    (
        $(#[doc = $about:literal])*
        $(#[derive($($derive:ident),* $(,)?)])?
        $(#[table($table:literal $(, $how:ident)?)])?
        $(#[check($check:path)])?
        #[choice($choice:literal, $meaning:literal)]
        $(#[absent($absent:expr)])?
        $(#[absent_word($absent_word:literal)])?
        $(#[source = $choice_source:expr])?
        $(#[matters_to = $choice_end:expr])?
        pub enum $Enum:ident {
            $(
                $(#[doc = $word_doc:literal])*
                $word:literal => $Variant:ident
                $({ $(
                    $(#[doc = $doc:literal])*
                    $(#[like($like:expr)])?
                    $(#[key = $key:literal])?
                    $(#[kind = $kind:expr])?
                    $(#[source = $source:expr])?
                    $(#[matters_to = $end:expr])?
                    $field:ident : $type:ty $(= $default:expr)?
                ),* $(,)? })?
                $(( .. $Part:ty ))?
                $((
                    $(#[doc = $one_doc:literal])*
                    $(#[kind = $one_kind:expr])?
                    $(#[absent = $one_absent:expr])?
                    $(#[source = $one_source:expr])?
                    $(#[matters_to = $one_end:expr])?
                    $one:ident : $one_type:ty $(= $one_default:expr)?
                ))?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        $(#[derive($($derive),*)])?
        pub enum $Enum {
            $(
                $(#[doc = $word_doc])*
                $Variant
                $({ $(
                    $(#[doc = $doc])*
                    $field: $type
                ),* })?
                $(($Part))?
                $(($one_type))?
            ),*
        }

        impl $Enum {
            /// The words, each with its meaning.
            pub const WORDS: &'static [$crate::schema::Word] =
                &[$(($word, concat!($($word_doc),*).trim_ascii())),*];

            /// The word that chooses this variant.
            pub const fn word(&self) -> &'static str {
                match self {
                    $(Self::$Variant { .. } => $word),*
                }
            }
        }

        impl $crate::Settings for $Enum {
            const KEYS: &'static [$crate::schema::Key] = &[
                $crate::schema::Key::Fields(&[$crate::schema::Field {
                    key: $choice,
                    kind: $crate::schema::Kind::Choice($Enum::WORDS),
                    fallback: $crate::__first!(
                        $($crate::schema::Fallback::Value(|| $Enum::word(&$absent).to_owned()),)?
                        $($crate::schema::Fallback::Is($absent_word),)?
                        $crate::schema::Fallback::Required
                    ),
                    meaning: $meaning,
                    source: $crate::__first!($($choice_source,)? ""),
                    only: $crate::schema::Conditions::NONE,
                    matters_to: $crate::__first!($(Some($choice_end),)? None),
                    named_by: &[],
                    is_essential: false,
                }]),
                $($crate::schema::Key::With {
                    choice: $choice,
                    word: $word,
                    keys: &[
                        $($(
                            $crate::__declare!(
                                [] $field $type; [$($key)?] [$($kind)?] [] [$($default)?]
                                [$($doc)*] [$($like)?] [$($source)?] [] [$($end)?]
                            ),
                        )*)?
                        $($crate::schema::Key::All(<$Part as $crate::Settings>::KEYS),)?
                        $($crate::__declare!(
                            [] $one $one_type; [] [$($one_kind)?] [$($one_absent)?] [$($one_default)?]
                            [$($one_doc)*] [] [$($one_source)?] [] [$($one_end)?]
                        ),)?
                    ],
                }),*
            ];

            fn read<R: $crate::Reader>(from: &R, base: Option<&Self>) -> Option<Self> {
                let absent = $crate::__first!($(Some($Enum::word(&$absent)),)? None);
                let word = from.choose($choice, base.map(Self::word), absent)?;
                let read = 'read: {
                    $(
                        if word == $word {
                            $($(
                                let $field = $crate::__read!(
                                    [] from,
                                    match base { Some(Self::$Variant { $field, .. }) => Some($field), _ => None },
                                    $field $type, [$($key)?] [$($default)?]
                                );
                            )*)?
                            break 'read Self::$Variant
                                $({ $($field: $field?),* })?
                                $((<$Part as $crate::Settings>::read(
                                    from,
                                    match base { Some(Self::$Variant(part)) => Some(part), _ => None },
                                )?))?
                                $(($crate::__read!(
                                    [] from,
                                    match base { Some(Self::$Variant($one)) => Some($one), _ => None },
                                    $one $one_type, [] [$($one_default)?]
                                )?))?;
                        }
                    )*
                    unreachable!("{} = {word:?} is none of the words it was read by", $choice)
                };
                $($check(from, &read);)?
                Some(read)
            }

            fn write(&self, to: &mut Vec<(&'static str, String)>) {
                to.push(($choice, self.word().to_owned()));
                match self {
                    $(
                        Self::$Variant $({ $($field),* })? $(($crate::__bind!(part $Part)))? $(($one))? => {
                            $($($crate::__write!(
                                [] to, $field $type, [$($key)?] [$($kind)?] [$($like)?]
                            );)*)?
                            $(<$Part as $crate::Settings>::write(part, to);)?
                            $($crate::__write!([] to, $one $one_type, [] [$($one_kind)?] []);)?
                        }
                    )*
                }
            }
        }

        $(
            impl Default for $Enum {
                fn default() -> Self {
                    $absent
                }
            }
        )?

        $crate::__table! { $Enum [$($about)*] $($table $($how)?)? }
    };
}

/// An enum of plain words, each with its meaning: `Head = "head"`. The doc comments are the
/// meanings; `#[default(Head)]` makes one of them the [`Default`].
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $about:literal])*
        $(#[derive($($derive:ident),* $(,)?)])?
        $(#[default($default:ident)])?
        pub enum $Enum:ident {
            $(
                $(#[doc = $doc:literal])*
                $Variant:ident = $word:literal
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq $(, $($derive),*)?)]
        pub enum $Enum {
            $(
                $(#[doc = $doc])*
                $Variant
            ),*
        }

        impl $Enum {
            /// The words, each with its meaning.
            pub const WORDS: &'static [$crate::schema::Word] =
                &[$(($word, concat!($($doc),*).trim_ascii())),*];

            /// The word of this variant.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word),*
                }
            }
        }

        $(
            impl Default for $Enum {
                fn default() -> Self {
                    Self::$default
                }
            }
        )?

        impl $crate::Value for $Enum {
            const KIND: $crate::schema::Kind = $crate::schema::Kind::Choice($Enum::WORDS);
            fn from_decoded(decoded: $crate::Decoded) -> Option<Self> {
                let $crate::Decoded::Word(word) = decoded else { return None };
                [$(Self::$Variant),*].into_iter().find(|choice| choice.word() == word)
            }
            fn show(&self, _: &$crate::schema::Kind) -> Option<String> {
                Some(self.word().to_owned())
            }
        }
    };
}
