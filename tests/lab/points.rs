//! A test for each point at which a process is killed, or each host of a check that takes long: they spread over the runner's
//! threads, and a failure names its point.

/// Tests of one check, in a module of what it is about: `on_docker = check(DOCKER) { name: "point", more…; }`.
macro_rules! each_point {
    (@call $check:ident ($($of:expr)?) $($words:expr),*) => { $check($($of,)? $($words),*) };
    ($($module:ident = $check:ident $of:tt { $($name:ident: $($words:expr),*;)* })*) => { $(
        mod $module {
            use super::*;
            $(
                #[test]
                #[ignore = "needs the lab (tests/lab/up)"]
                fn $name() {
                    each_point!(@call $check $of $($words),*);
                }
            )*
        }
    )* };
}

pub(crate) use each_point;
