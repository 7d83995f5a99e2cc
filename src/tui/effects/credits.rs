//! Effects over the credits: the ledger, and a grant.

use super::Effects;
use crate::client::GrantRequest;
use crate::domain::Time;
use crate::tui::message::Msg;
use crate::tui::model::Ledger;

impl Effects {
    /// Reads the ledger's sums and its history.
    pub(super) fn credits(&self, now: Time) {
        let client = self.client();
        self.answer(Msg::Credits, async move {
            let sums = client.credits().await?;
            let history = client.credit_history().await?;
            // The history is summed up here, off the UI's thread.
            Ok(Box::new(Ledger::of(sums, history, now)))
        });
    }

    /// Grants what a form asks for.
    pub(super) fn grant(&self, form: u64, request: GrantRequest) {
        let client = self.client();
        self.answer(move |answer| Msg::Granted(form, answer), async move {
            client.grant_credits(request).await
        });
    }
}
