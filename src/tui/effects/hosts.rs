//! Questions to one host.

use super::Effects;
use crate::domain::name::HostName;
use crate::tui::message::Msg;

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
}
