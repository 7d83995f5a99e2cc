//! A test for each point at which a process is killed, or each host of a check that takes long: they spread over the runner's
//! threads, and a failure names its point.

/// Tests of one check, in a module of its name: `check { name: "point", more…; }`; or of another, with what it is called with
/// each time: `on_docker = check(DOCKER) { name: "point", more…; }`.
macro_rules! each_point {
    (@call $check:ident ($($of:expr)?) $($words:expr),*) => { $check($($of,)? $($words),*) };
    ($($check:ident { $($name:ident: $($words:expr),*;)* })*) => {
        each_point! { $($check = $check() { $($name: $($words),*;)* })* }
    };
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
