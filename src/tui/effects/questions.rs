//! Questions to the client: of one host, of stale things, of credits.

use super::Effects;
use crate::client::{GrantRequest, PlanRequest, StaleQuery};
use crate::domain::Time;
use crate::domain::name::HostName;
use crate::tui::message::Msg;
use crate::tui::model::{Judged, Ledger};

impl Effects {
    pub(super) fn check_host(&self, name: HostName) {
        let (client, of) = (self.client(), name.clone());
        self.answer(move |answer| Msg::HostChecked(of, answer), async move {
            client.check_host(name.as_str()).await.map(Box::new)
        });
    }

    pub(super) fn sample_host(&self, name: HostName) {
        let (client, of) = (self.client(), name.clone());
        self.answer(move |answer| Msg::HostSampled(of, answer), async move {
            client.sample_host(name.as_str()).await.map(Box::new)
        });
    }

    pub(super) fn refresh_services(&self, name: HostName) {
        let (client, of) = (self.client(), name.clone());
        self.answer(move |answer| Msg::ServicesRefreshed(of, answer), async move {
            client.refresh_services(name.as_str()).await
        });
    }

    pub(super) fn stale(&self) {
        let client = self.client();
        self.answer(Msg::Stale, async move {
            let query = StaleQuery { as_last_seen: true, ..StaleQuery::default() };
            client.stale(query).await.map(Box::new)
        });
    }

    pub(super) fn plan_reap(&self, number: u64) {
        let client = self.client();
        self.answer(move |answer| Msg::ReapPlanned(number, answer), async move {
            let plan = client.plan_reap(PlanRequest::default()).await?;
            Ok(Judged::Plan(Box::new(plan)))
        });
    }

    pub(super) fn inspect_stale(&self, number: u64) {
        let client = self.client();
        self.answer(move |answer| Msg::ReapPlanned(number, answer), async move {
            let report = client.stale(StaleQuery::default()).await?;
            Ok(Judged::Report(Box::new(report)))
        });
    }

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
