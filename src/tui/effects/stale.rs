//! What is stale: judged by what was seen last, planned, or asked of every host.

use super::Effects;
use crate::client::{PlanRequest, StaleQuery};
use crate::tui::message::Msg;
use crate::tui::model::Judged;

impl Effects {
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
}
