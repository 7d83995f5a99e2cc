//! Named points at which the kill tests end the process; nothing at all in a release.
//!
//! With the feature `failpoints`, `FAILPOINTS="create.provisioned=return"` sends this process SIGKILL when it comes
//! to that point. `...=return(PATH)` holds it there until there is a file `PATH`; that it is there is told by `PATH.reached`.

/// Point `name`, at which a test may stop the process.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub(crate) fn reached(_name: &str) {}

/// Point `name`, at which a test may stop the process.
#[cfg(feature = "failpoints")]
pub(crate) fn reached(name: &str) {
    tracing::debug!(name, "failpoint");
    fail::fail_point!(name, |gate: Option<String>| gate
        .map_or_else(kill_self, |gate| wait_at(&gate)));
}

/// Seconds that a test sets in place of a limit that it cannot wait for: `unseen.limit=return(1)`.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub(crate) fn limit(_name: &str, otherwise: std::time::Duration) -> std::time::Duration {
    otherwise
}

/// Seconds that a test sets in place of a limit that it cannot wait for: `unseen.limit=return(1)`.
#[cfg(feature = "failpoints")]
pub(crate) fn limit(name: &str, otherwise: std::time::Duration) -> std::time::Duration {
    let set = || -> Option<u64> {
        fail::fail_point!(name, |seconds: Option<String>| seconds?.parse().ok());
        None
    };
    set().map_or(otherwise, std::time::Duration::from_secs)
}

#[cfg(feature = "failpoints")]
fn wait_at(gate: &str) {
    // A test that cannot see it waits for it in vain, and says so.
    let _ = std::fs::write(format!("{gate}.reached"), "");
    let wait = || {
        while !std::path::Path::new(gate).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    // The rest of the process goes on: the worker that waits here may be the one that watches files and clocks.
    let flavour = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavour, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(wait);
    } else {
        wait();
    }
}

#[cfg(feature = "failpoints")]
fn kill_self() {
    // A failed kill would let the test go on: the abort makes sure that the process ends here.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}
