//! Where an operation is among its steps, so that faces count to the number that they were told first.

use crate::domain::extension::Report;

/// The step that an operation is at, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// The step that was told of last; empty before the first.
    pub(super) stage: &'static str,
    step: u32,
    steps: u32,
    /// The steps before the part that counts its own.
    before: u32,
    /// The steps that come after such a part.
    after: u32,
}

impl Course {
    /// There are so many steps in all, as far as that is known (0: it is not), and `after` of them follow the extension's own.
    /// The number that was told only grows, by what comes unexpectedly.
    pub(super) fn announce(&mut self, total: u32, after: u32) {
        self.steps = self.steps.max(total);
        self.after = after;
    }

    /// Numbers a step. One that does not know its place (`steps` is 0) follows the one before it; the numbers of a part that
    /// counts its own begin behind what came before that.
    pub(super) fn place(&mut self, report: &Report) -> (u32, u32) {
        let new = report.stage != self.stage;
        match report.steps {
            0 => self.step += u32::from(new),
            count => {
                if new && report.step == 1 {
                    self.before = self.step;
                }
                self.step = self.before + report.step;
                self.steps = self.steps.max(self.before + count + self.after);
            }
        }
        self.stage = report.stage;
        self.steps = self.steps.max(self.step);
        (self.step, self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(course: &mut Course, reports: &[(&'static str, u32, u32)]) -> Vec<String> {
        let place = |&(stage, step, steps): &(&'static str, u32, u32)| {
            let (step, steps) = course.place(&Report { stage, step, steps, ..Report::default() });
            format!("{step}/{steps}")
        };
        reports.iter().map(place).collect()
    }

    #[test]
    fn the_first_number_holds_to_the_last_step() {
        let mut course = Course::default();
        course.announce(2 + 5 + 1, 1);
        let copy = [("prepare", 0, 0), ("copy", 0, 0), ("copy", 0, 0)];
        assert_eq!(told(&mut course, &copy), ["1/8", "2/8", "2/8"]);
        let restore =
            [("prepare", 1, 5), ("extract", 2, 5), ("render", 3, 5), ("up", 4, 5), ("up", 4, 5)];
        assert_eq!(told(&mut course, &restore), ["3/8", "4/8", "5/8", "6/8", "6/8"]);
        assert_eq!(told(&mut course, &[("ready", 0, 0), ("patch", 0, 0)]), ["7/8", "8/8"]);
        // What nobody expected.
        assert_eq!(told(&mut course, &[("rollback", 0, 0)]), ["9/9"]);
    }

    #[test]
    fn a_part_that_alone_knows_its_number_is_told_with_what_follows_it() {
        let mut course = Course::default();
        course.announce(0, 1);
        let capture =
            [("prepare", 1, 4), ("pause", 2, 4), ("archive", 3, 4), ("seal", 4, 4), ("keep", 0, 0)];
        assert_eq!(told(&mut course, &capture), ["1/5", "2/5", "3/5", "4/5", "5/5"]);
    }
}
