//! Deadlines that nobody keeps: what is said where nothing that sweeps has run for a while.

use std::time::Duration;

use crate::domain::profile::Seconds;
use crate::manager::deps::Deps;

/// Time without a sweep after which that is said.
const TOO_LONG: Duration = Duration::from_mins(10);

/// Time that the clock may lie behind the last sweep's without being another one's.
const CLOCK_SLACK: Duration = Duration::from_mins(1);

pub(crate) const SWEEP_HINT: &str =
    "keep the dashboard open, or let a timer run `sandboxer sweep` (assets/systemd in the source)";

/// Last sweep, as far as it matters to deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastSweep {
    Ago(Duration),
    Never,
}

impl LastSweep {
    /// Whether nobody may be there to end what expires.
    pub(crate) fn is_too_long_ago(self) -> bool {
        match self {
            Self::Ago(ago) => ago >= TOO_LONG,
            Self::Never => true,
        }
    }

    pub(crate) fn words(self) -> String {
        match self {
            Self::Ago(ago) if self.is_too_long_ago() => {
                format!("nothing has swept for {}", rounded(ago))
            }
            Self::Ago(ago) => format!("last swept {} ago", Seconds(ago.as_secs())),
            Self::Never => "nothing has swept yet".to_owned(),
        }
    }
}

/// Minutes and above: a second more or less says nothing.
fn rounded(ago: Duration) -> Seconds {
    Seconds(ago.as_secs() / 60 * 60)
}

/// When something swept last. What cannot be read, or lies ahead, is not known.
pub(crate) async fn last_sweep(deps: &Deps) -> LastSweep {
    let now = deps.now();
    match deps.sweeps.last().await {
        Ok(Some(last)) if last.wall.since(now) <= CLOCK_SLACK => {
            LastSweep::Ago(now.since(last.wall))
        }
        Ok(_) => LastSweep::Never,
        Err(error) => {
            tracing::warn!(%error, "when something swept last cannot be read");
            LastSweep::Never
        }
    }
}

/// Remark for a new sandbox with a deadline, where nobody may be there to end it.
pub(crate) async fn remark_unswept(deps: &Deps, ttl_s: Option<u64>) -> Option<String> {
    ttl_s?;
    let last = last_sweep(deps).await;
    last.is_too_long_ago().then(|| {
        format!("{}, so nobody may end it when its time is over: {SWEEP_HINT}", last.words())
    })
}
