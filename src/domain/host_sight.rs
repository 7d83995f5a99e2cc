//! Host sightings: what is known of a host from what was told of it last, and what there is to tell of how it is seen now.

use crate::domain::event::{Event, EventKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostSight {
    /// Host answers; with its machine id, where that was asked for.
    Answers(Option<String>),
    /// Host does not answer.
    Silent,
    /// Key, or its identity, is not the one that is known.
    Another,
}

/// Knowledge of a host before it is seen again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostMemory {
    /// Last sighting; none: never.
    pub(crate) last: Option<HostSight>,
    pub(crate) machine_id: Option<String>,
}

impl HostMemory {
    /// Takes in what an event tells of the host.
    pub(crate) fn heard(&mut self, event: &Event) {
        let machine_id = event.machine_id().map(str::to_owned);
        match event.kind {
            EventKind::HostDown => self.saw(&HostSight::Silent),
            EventKind::HostUp => self.saw(&HostSight::Answers(machine_id)),
            // Another machine that was looked at is the host from then on.
            EventKind::HostChanged if machine_id.is_some() => {
                self.saw(&HostSight::Answers(machine_id));
            }
            EventKind::HostChanged => self.saw(&HostSight::Another),
            _ => {}
        }
    }

    /// Takes in how it is seen.
    pub(crate) fn saw(&mut self, sight: &HostSight) {
        if let HostSight::Answers(Some(machine_id)) = sight {
            self.machine_id = Some(machine_id.clone());
        }
        self.last = Some(sight.clone());
    }

    /// Event of how it is seen now, if there is any. A host that never was seen to answer does not go down.
    pub(crate) fn news(&self, sight: &HostSight) -> Option<EventKind> {
        let was_known = matches!((sight, &self.machine_id), (HostSight::Answers(Some(now)), Some(old)) if now != old);
        match (&self.last, sight) {
            (_, HostSight::Answers(_)) if was_known => Some(EventKind::HostChanged),
            (Some(HostSight::Silent | HostSight::Another), HostSight::Answers(_)) => {
                Some(EventKind::HostUp)
            }
            (Some(HostSight::Answers(_) | HostSight::Another), HostSight::Silent) => {
                Some(EventKind::HostDown)
            }
            (None | Some(HostSight::Answers(_)), HostSight::Answers(_))
            | (None | Some(HostSight::Silent), HostSight::Silent)
            | (Some(HostSight::Another), HostSight::Another) => None,
            (None | Some(HostSight::Answers(_) | HostSight::Silent), HostSight::Another) => {
                Some(EventKind::HostChanged)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_is_told_once() {
        let machine = |id: &str| HostSight::Answers(Some(id.to_owned()));
        let mut known = HostMemory::default();
        let turns = [
            (HostSight::Silent, None, "never seen to answer"),
            (HostSight::Answers(None), Some(EventKind::HostUp), "answers"),
            (machine("a"), None, "its machine is learnt"),
            (HostSight::Silent, Some(EventKind::HostDown), "down"),
            (HostSight::Silent, None, "still"),
            (machine("a"), Some(EventKind::HostUp), "back"),
            (HostSight::Answers(None), None, "still"),
            (machine("b"), Some(EventKind::HostChanged), "another machine"),
            (machine("b"), None, "which is the host now"),
            (HostSight::Another, Some(EventKind::HostChanged), "another key"),
            (HostSight::Another, None, "still"),
            (HostSight::Silent, Some(EventKind::HostDown), "and down"),
            (machine("c"), Some(EventKind::HostChanged), "back as another one"),
        ];
        for (sight, news, what) in turns {
            assert_eq!(known.news(&sight), news, "{what}");
            known.saw(&sight);
        }
    }
}
