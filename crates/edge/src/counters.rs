//! Counters of mechanisms, by name.

/// Declares a mechanism's counters: a structure with its fields as documentation
/// ([`airtcp_core::documented!`]), and with their values by name.
macro_rules! counters {
    (
        $(#[doc = $doc:literal])*
        #[derive($($derive:tt)*)]
        pub struct $name:ident {
            $($(#[doc = $prose:literal])* pub $field:ident: u64,)*
        }
    ) => {
        ::airtcp_core::documented! {
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

pub(crate) use counters;
