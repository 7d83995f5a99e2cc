//! Named points at which the kill tests end the process; nothing at all in a release.
//!
//! With the feature `failpoints`, `FAILPOINTS="create.provisioned=return"` sends this process SIGKILL when it comes
//! to that point, and `...=sleep(5000)` holds it there for 5 s.

/// Says that the point `name` was reached.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn reached(_name: &str) {}

/// Says that the point `name` was reached.
#[cfg(feature = "failpoints")]
pub fn reached(name: &str) {
    tracing::debug!(name, "failpoint");
    fail::fail_point!(name, |_| kill_self());
}

#[cfg(feature = "failpoints")]
fn kill_self() {
    // A failed kill would let the test go on: the abort makes sure that the process ends here.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}
