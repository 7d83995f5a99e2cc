//! Renewal of a hold without a deadline, hour by hour; where credits are missing it is told, and after a while the sandbox ends.

use crate::domain::Time;
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::meter::{CostMeter, RENEWED_S, UNPAID_S};
use crate::domain::sandbox::SandboxRecord;
use crate::failpoint;
use crate::manager::credits::cover::{hold_lacking, price_until};
use crate::manager::credits::hold::give_back;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};

pub(crate) enum Renewal {
    Renewed,
    /// Credits are missing, which was told now.
    Warned(Time, Error),
    /// Credits are missing still; when it ends for that.
    Unpaid(Time, Error),
}

/// Renews the hold of a record that is as it was judged.
///
/// Errors: `conflict` where somebody changed it; why its price is not known.
pub(crate) async fn renew(deps: &Deps, judged: &SandboxRecord) -> Result<Renewal, Error> {
    let price = price_until(deps, judged, None).await?;
    let lock = deps.credits.lock_holders().await?;
    let hold = match hold_lacking(deps, judged, price, lock).await {
        Ok(hold) => hold,
        Err(error) if error.code == Code::InsufficientCredits => {
            return tell_unpaid(deps, judged, error).await;
        }
        Err(error) => return Err(error),
    };
    let now = deps.now();
    let renewed = |record: &mut SandboxRecord| {
        if let Some(hold) = &hold {
            hold.note_on(record);
        }
        if let Some(meter) = &mut record.meter {
            meter.renew_at = Some(now.plus_seconds(RENEWED_S));
            meter.unpaid_since = None;
        }
        Ok(())
    };
    let guard = Guard::Revision(Some(judged.revision));
    match journal::update(deps, &judged.id, guard, Vec::new(), renewed).await {
        Ok(_) => {
            failpoint::reached("credits.renewed");
            Ok(Renewal::Renewed)
        }
        Err(error) => Err(give_back(deps, hold, error).await),
    }
}

/// Tells once that a hold could not be renewed.
async fn tell_unpaid(deps: &Deps, judged: &SandboxRecord, error: Error) -> Result<Renewal, Error> {
    if let Some(end) = judged.meter.as_ref().and_then(CostMeter::ends_unpaid_at) {
        return Ok(Renewal::Unpaid(end, error));
    }
    let now = deps.now();
    let end = now.plus_seconds(UNPAID_S);
    let data = serde_json::json!({
        "host": judged.host, "expires_at": end, "reason": "credits", "protected": judged.is_protected(),
    });
    let message = format!("its credits ran out: it ends at {end} unless some are granted");
    let told = |record: &mut SandboxRecord| {
        record.message = Some(message);
        if let Some(meter) = &mut record.meter {
            meter.unpaid_since = Some(now);
        }
        Ok(())
    };
    let guard = Guard::Revision(Some(judged.revision));
    journal::update(deps, &judged.id, guard, vec![(EventKind::SandboxExpiring, data)], told)
        .await?;
    failpoint::reached("credits.unpaid");
    Ok(Renewal::Warned(end, error))
}
