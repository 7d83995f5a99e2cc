//! `environment`, `env_file` and `label_file`: all values written into the rendered file.
//!
//! Environment files are inlined, so that starting, waking and tearing down never depend on a file that the
//! sandbox itself may have removed, and so that every compose reads them the same way.

use serde_json::{Map, Value};

use crate::domain::profile::Allowance;

use super::document::ENTRY_BYTES;
use super::dotenv;
use super::error::RenderError;
use super::interpolate::Variables;
use super::load::{Loader, read_entries};
use super::merge::{assignments, list, scalar};
use crate::domain::problem::join;

/// Most environment or label files of one service.
const MAX_FILES: usize = 32;

/// Replaces `env_file` and `environment` by one `environment` in which every name has a value.
pub(super) fn inline(
    service: &mut Map<String, Value>,
    path: &str,
    loader: &mut Loader<'_>,
    variables: &Variables,
) -> Result<(), RenderError> {
    let mut merged = from_files(service, "env_file", path, loader, variables)?;
    let environment = assignments(service.shift_remove("environment").unwrap_or_default());
    settle(environment, &join(path, "environment"), loader, variables, &mut merged);
    if !merged.is_empty() {
        service.insert("environment".to_owned(), Value::Object(merged));
    }
    Ok(())
}

/// Replaces `label_file` and `labels` by one mapping, returned.
pub(super) fn labels(
    service: &mut Map<String, Value>,
    path: &str,
    loader: &mut Loader<'_>,
    variables: &Variables,
) -> Result<Map<String, Value>, RenderError> {
    let file = from_files(service, "label_file", path, loader, variables)?;
    let mut merged =
        super::labels::mapping(Value::Object(file), &join(path, "label_file"), loader.findings);
    merged.extend(super::labels::mapping(
        service.shift_remove("labels").unwrap_or_default(),
        &join(path, "labels"),
        loader.findings,
    ));
    Ok(merged)
}

/// Fills in names without a value (`environment: [NAME]`) from the variables, and drops those that have none:
/// otherwise the engine would take them from the account on the host.
pub(super) fn settle(
    environment: Value,
    path: &str,
    loader: &mut Loader<'_>,
    variables: &Variables,
    into: &mut Map<String, Value>,
) {
    let entries = match environment {
        Value::Object(entries) => entries,
        Value::Null => return,
        _ => {
            loader.findings.refuse(
                path,
                None,
                "write it as a mapping `NAME: value` or as a list of `NAME=value`",
            );
            return;
        }
    };
    for (name, value) in entries {
        let here = join(path, &name);
        match value {
            _ if name.trim().is_empty() || name.contains(['=', '\0']) => {
                loader.findings.refuse(&here, None, "a variable needs a name without `=`");
            }
            Value::Object(_) | Value::Array(_) => {
                loader.findings.refuse(
                    &here,
                    None,
                    "a variable's value is one word or number; quote it",
                );
            }
            Value::Null => pass_through(&name, &here, loader, variables, into),
            value => drop(into.insert(name, scalar(&value).into())),
        }
    }
}

fn pass_through(
    name: &str,
    path: &str,
    loader: &mut Loader<'_>,
    variables: &Variables,
    into: &mut Map<String, Value>,
) {
    if let Some(value) = variables
        .get(name)
        .filter(|value| value.len() < ENTRY_BYTES || loader.fits(value.len(), path))
    {
        into.insert(name.to_owned(), value.clone().into());
    } else {
        into.shift_remove(name);
        loader.findings.unset(name, path);
    }
}

fn from_files(
    service: &mut Map<String, Value>,
    key: &str,
    path: &str,
    loader: &mut Loader<'_>,
    variables: &Variables,
) -> Result<Map<String, Value>, RenderError> {
    let path = join(path, key);
    let mut merged = Map::new();
    let mut outside = Vec::new();
    let items = list(service.shift_remove(key).unwrap_or_default());
    if items.len() > MAX_FILES {
        loader.findings.refuse(
            &path,
            None,
            format!("a service reads at most {MAX_FILES} such files; merge some"),
        );
        return Ok(merged);
    }
    for item in items {
        let file =
            item.as_str().or_else(|| item.get("path").and_then(Value::as_str)).map(str::to_owned);
        let Some(file) = file else {
            loader.findings.refuse(&path, None, "name a file, or give a mapping with `path:`");
            continue;
        };
        if loader.leads_out(&file)? {
            // Not every compose knows `label_file`, so it cannot be left to the host's.
            let allow = Some(Allowance::BindMounts).filter(|_| key == "env_file");
            if loader.bind_allowed && allow.is_some() {
                outside.push(item);
            } else {
                loader.findings.refuse(
                    &path,
                    allow,
                    format!("`{file}` is outside the workspace; copy it in"),
                );
            }
            continue;
        }
        let optional = item.get("required").is_some_and(|required| !super::keys::is_on(required));
        let raw = item.get("format").and_then(Value::as_str) == Some("raw");
        let found =
            if optional { loader.optional(&file, &path)? } else { loader.named(&file, &path)? };
        let Some((file, bytes)) = found else { continue };
        let entries = if raw {
            raw_entries(&bytes)
        } else {
            read_entries(&file, &bytes, variables, loader.findings)?
        };
        let bytes = entries.iter().filter_map(|(_, value)| value.as_ref()).map(String::len).sum();
        if !loader.fits(bytes, &path) {
            break;
        }
        for (name, value) in entries {
            match value {
                Some(value) => drop(merged.insert(name, value.into())),
                None => pass_through(&name, &path, loader, variables, &mut merged),
            }
        }
    }
    if !outside.is_empty() {
        service.insert(key.to_owned(), Value::Array(outside));
    }
    Ok(merged)
}

fn raw_entries(bytes: &[u8]) -> Vec<dotenv::Entry> {
    dotenv::parse_raw(&String::from_utf8_lossy(bytes))
}
