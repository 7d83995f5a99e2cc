//! A test for each case of a check, mostly a host: they spread over the runner's threads, and a failure names its own.

/// Tests of one check, in a module of its name: `check { name: HOST, more…; }`; or of another: `name = check { name: HOST; }`.
macro_rules! each_case {
    ($($check:ident { $($name:ident: $($words:expr),*;)* })*) => {
        each_case! { $($check = $check { $($name: $($words),*;)* })* }
    };
    ($($module:ident = $check:ident { $($name:ident: $($words:expr),*;)* })*) => { $(
        mod $module {
            use super::*;
            $(
                #[test]
                #[ignore = "needs the lab (tests/lab/up)"]
                fn $name() {
                    $check($($words),*);
                }
            )*
        }
    )* };
}

pub(crate) use each_case;
