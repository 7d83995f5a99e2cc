//! Inputs that a create gives, held against its profile's.

use std::collections::BTreeMap;

use super::definition::Profile;
use super::inputs::{InputProblem, SANDBOX_ID};
use crate::domain::problem::shown;
use crate::domain::text::nearest;

impl Profile {
    /// Checks what a create gives and fills in defaults. Returns every input that has a value, `sandbox_id` left
    /// out (the caller takes it as the id); or everything that is wrong, required ones that are missing last.
    pub fn check_inputs(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Vec<InputProblem>> {
        let mut problems = Vec::new();
        for (name, value) in given.iter().filter(|(name, _)| name.as_str() != SANDBOX_ID) {
            let verdict = match self.inputs.get(name) {
                Some(spec) => spec.check(name, value),
                None => Err(self.unknown_input(name)),
            };
            problems
                .extend(verdict.err().map(|message| InputProblem { field: name.clone(), message }));
        }
        let mut resolved = BTreeMap::new();
        for (name, spec) in self.inputs.iter() {
            match given.get(name).or(spec.default.as_ref()) {
                Some(value) => {
                    resolved.insert(name.to_owned(), value.clone());
                }
                None if spec.required => {
                    let help =
                        spec.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
                    let message = format!("input '{name}' is required by {}{help}", self.id);
                    problems.push(InputProblem { field: name.to_owned(), message });
                }
                None => {}
            }
        }
        if problems.is_empty() { Ok(resolved) } else { Err(problems) }
    }

    fn unknown_input(&self, name: &str) -> String {
        let end = match nearest(name, self.inputs.names().chain([SANDBOX_ID])) {
            Some(near) => format!(", did you mean '{near}'?"),
            None if self.inputs.is_empty() => format!("; {} takes no inputs", self.id),
            None => format!(
                "; {} takes {}",
                self.id,
                self.inputs.names().collect::<Vec<_>>().join(", ")
            ),
        };
        format!("unknown input {}{end}", shown(name))
    }
}
