use std::path::Path;

use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::domain::host::HostSpec;
use crate::transport::local::LocalTransport;

/// Notes how many sandboxes it is about, waits until it may go on, says something about each.
const SCRIPT: &str = r#"at=$1
shift
echo $(($# / 3)) >>"$at/calls"
until [ -e "$at/go" ]; do sleep 0.02; done
echo begun=all
while [ $# -gt 0 ]; do printf 'of=%s\nabout=%s\nof=\n' "$1" "$3"; shift 3; done
echo about=all
"#;

struct House {
    folder: TempDir,
    removals: Removals,
}

/// Lines that one heard, and how often it tried.
type Heard = (Vec<String>, usize);

impl House {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), removals: Removals::default() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn removes(&self, id: &str, alone: bool) -> JoinHandle<Heard> {
        let call = Call {
            transport: Arc::new(LocalTransport::new(HostSpec::local())),
            script: SCRIPT,
            words: vec![self.path().display().to_string()],
            limit: Duration::from_mins(1),
        };
        let own = Own {
            id: SandboxId::parse(id).unwrap(),
            words: ["1".to_owned(), format!("images of {id}")],
            alone,
        };
        let removals = self.removals.clone();
        tokio::spawn(async move {
            for tries in 1.. {
                let mut heard = Vec::new();
                let mut take = |line: &[u8]| heard.push(String::from_utf8_lossy(line).into_owned());
                if let Some(ended) = removals.remove(&call, &own, &mut take).await {
                    assert!(ended.unwrap().ok());
                    return (heard, tries);
                }
            }
            unreachable!()
        })
    }

    /// How many sandboxes each call was about, once there are so many calls.
    async fn calls(&self, count: usize) -> Vec<String> {
        for _ in 0..3000 {
            let text = std::fs::read_to_string(self.path().join("calls")).unwrap_or_default();
            let calls: Vec<String> = text.lines().map(str::to_owned).collect();
            if calls.len() >= count {
                return calls;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there were not {count} calls");
    }

    fn go(&self) {
        std::fs::write(self.path().join("go"), "").unwrap();
    }
}

fn about(id: &str) -> Vec<String> {
    ["begun=all".to_owned(), format!("about=images of {id}"), "about=all".to_owned()].to_vec()
}

#[tokio::test]
async fn who_comes_while_one_is_removed_goes_with_those_who_come_then() {
    let house = House::new();
    let first = house.removes("a", false);
    house.calls(1).await;
    let others = ["b", "c", "d"].map(|id| (id, house.removes(id, false)));
    let alone = house.removes("e", true);
    let mut calls = house.calls(3).await;
    calls.sort();
    assert_eq!(calls, ["1", "1", "3"]);
    house.go();
    assert_eq!(first.await.unwrap(), (about("a"), 1));
    assert_eq!(alone.await.unwrap(), (about("e"), 1));
    for (id, other) in others {
        assert_eq!(other.await.unwrap(), (about(id), 1));
    }
    assert!(locked(&house.removals.0).is_empty());
}

#[tokio::test]
async fn the_rest_tries_again_where_one_leaves_a_call_that_began() {
    let house = House::new();
    let first = house.removes("a", false);
    house.calls(1).await;
    let [b, c, d] = ["b", "c", "d"].map(|id| house.removes(id, false));
    assert_eq!(house.calls(2).await, ["1", "3"]);
    c.abort();
    assert_eq!(house.calls(3).await, ["1", "3", "2"]);
    house.go();
    assert_eq!(first.await.unwrap(), (about("a"), 1));
    assert_eq!(b.await.unwrap(), (about("b"), 2));
    assert_eq!(d.await.unwrap(), (about("d"), 2));
    assert!(locked(&house.removals.0).is_empty());
}

#[tokio::test]
async fn who_leaves_before_it_began_is_not_in_it() {
    let house = House::new();
    let first = house.removes("a", false);
    house.calls(1).await;
    let b = house.removes("b", false);
    let c = house.removes("c", false);
    // Both came, and the batch waits for others.
    while locked(&house.removals.0)
        .values()
        .all(|queue| queue.open.as_ref().is_none_or(|open| locked(&open.state.members).len() < 2))
    {
        tokio::task::yield_now().await;
    }
    b.abort();
    assert_eq!(house.calls(2).await, ["1", "1"]);
    house.go();
    assert_eq!(first.await.unwrap(), (about("a"), 1));
    assert_eq!(c.await.unwrap(), (about("c"), 1));
}
