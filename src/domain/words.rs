//! Closed lists of words that stay open for readers: an unknown word is kept as it is.

/// Defines an enum whose values are the contract's words. An unknown word becomes `Other`, so that a newer
/// version's file can be read and written back unchanged.
macro_rules! string_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A word this version does not know, kept as it was read.
            Other(String),
        }

        impl $name {
            /// Every value that this version knows, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as the contract spells it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }

            /// The value for a word; an unknown one is kept as `Other`.
            pub fn from_word(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self::from_word(&word))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            /// Open where it is printed, closed where an operator writes it.
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                if generator.contract().is_deserialize() {
                    return schemars::json_schema!({"type": "string", "enum": [$($word),+]});
                }
                schemars::json_schema!({
                    "type": "string",
                    "description": concat!("Known words; readers accept others: ", $($word, " ",)+),
                })
            }
        }
    };
}
pub(crate) use string_enum;
