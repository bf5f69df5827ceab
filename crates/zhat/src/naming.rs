//! Names for the values of an enumeration, as users write them: one list gives `ALL`, `Display` and `FromStr`.

/// Gives an enumeration the names of its values: `ALL`, `name()`, `Display`, and `FromStr` with an error that lists them.
///
/// ```
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum Fill { Mean, Draw }
/// zhat::named!(Fill, "fill", { Mean: "mean", Draw: "draw" });
/// assert_eq!("draw".parse::<Fill>(), Ok(Fill::Draw));
/// assert!("mode".parse::<Fill>().unwrap_err().to_string().contains("one of mean, draw"));
/// ```
#[macro_export]
macro_rules! named {
    ($type:ident, $what:literal, { $($variant:ident: $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values, in the order in which they are listed to users.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The name that users write.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                match text.trim() {
                    $($name => Ok($type::$variant),)+
                    other => Err($crate::Error::InvalidSetting {
                        name: $what,
                        value: other.to_owned(),
                        expected: format!("one of {}", [$($name),+].join(", ")),
                    }),
                }
            }
        }
    };
}
