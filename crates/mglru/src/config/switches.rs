//! Sets of switches by name: the patches of a series, the rules of a release.

/// Makes a set of switches: fields, their names with what they say, and a look-up by name.
macro_rules! switches {
    (
        $(#[$set_doc:meta])*
        $set:ident {
            $($(#[$doc:meta])* $field:ident = $says:literal),* $(,)?
        }
    ) => {
        $(#[$set_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $set {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl $set {
            /// Lists the name and meaning of each switch.
            pub const NAMES: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), $says)),*];

            /// Turns all switches on.
            pub const ALL: Self = Self { $($field: true),* };
            /// Turns all switches off.
            pub const NONE: Self = Self { $($field: false),* };

            /// Lists the state of each switch, in the order of [`Self::NAMES`].
            pub fn states(&self) -> Vec<(&'static str, bool)> {
                [$((stringify!($field), self.$field)),*].to_vec()
            }

            pub(super) fn switch(&mut self, name: &str) -> Option<&mut bool> {
                match name { $(stringify!($field) => Some(&mut self.$field),)* _ => None }
            }
        }
    };
}
