//! Reader of what compose hands to `docker buildx bake`.

use serde_json::Value;

use super::{Judge, Promise};

impl Judge<'_> {
    /// The file that `docker compose build --print` shows.
    pub(crate) fn bake(&mut self, file: &Value) {
        for (key, value) in file.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("group", _) => {}
                ("target", Value::Object(targets)) => {
                    targets.values().for_each(|target| self.target(target));
                }
                _ => self.find(Promise::Unknown, format!("{key}: {value}"), "a key of a bake file"),
            }
        }
    }

    fn target(&mut self, target: &Value) {
        let words = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        for (key, value) in target.as_object().into_iter().flatten() {
            let word = format!("{key}: {value}");
            let text = value.as_str().unwrap_or_default();
            match key.as_str() {
                "context" => self.context(text, &word),
                "contexts" => {
                    for context in value
                        .as_object()
                        .into_iter()
                        .flatten()
                        .filter_map(|(_, value)| value.as_str())
                    {
                        self.context(
                            context.strip_prefix("target:").map_or(context, |_| "service:web"),
                            &word,
                        );
                    }
                }
                "dockerfile" if text.starts_with('/') => {
                    self.host_file(text, &word, "a Dockerfile");
                }
                "dockerfile" if text.split('/').any(|part| part == "..") => {
                    self.find(Promise::HostFiles, word, "a Dockerfile outside of the workspace");
                }
                "labels" => {
                    let pairs = value.as_object().into_iter().flatten();
                    let told: Vec<(String, String)> = pairs
                        .map(|(name, value)| {
                            (name.clone(), value.as_str().unwrap_or_default().to_owned())
                        })
                        .collect();
                    let own = ["project", "service", "version"]
                        .map(|name| format!("com.docker.compose.{name}"));
                    let known: Vec<(&str, &str)> =
                        own.iter().map(|name| (name.as_str(), "")).collect();
                    self.labels(&told, false, &known);
                }
                "tags" => words(value).iter().for_each(|tag| self.built_name(tag, &word)),
                "cache-from" => words(value).iter().for_each(|from| self.cache(from)),
                "secret" => words(value).iter().for_each(|secret| self.build_secret(secret)),
                "output"
                    if words(value)
                        .iter()
                        .all(|output| matches!(output.as_str(), "type=docker" | "type=image")) => {}
                "network" if matches!(text, "none" | "default") => {}
                "attest"
                    if words(value).iter().all(|word| word.matches(['=', ',']).count() <= 3) => {}
                "dockerfile" | "dockerfile-inline" | "args" | "target" | "no-cache"
                | "no-cache-filter" | "platforms" | "pull" | "shm-size" | "ulimits"
                | "extra-hosts" => {}
                _ => self.find(Promise::Privileges, word, "a key of a build"),
            }
        }
    }
}
