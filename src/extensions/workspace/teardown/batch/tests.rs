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
while [ $# -gt 0 ]; do
  printf 'of=%s\nabout=%s\nfinished=yes\nof=\n' "$1" "$3"
  shift 3
  until [ $# = 0 ] || [ -e "$at/rest" ]; do sleep 0.02; done
done
[ ! -e "$at/fails" ] || exit 1
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
            further: Duration::ZERO,
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
                let mut take = |line: &[u8]| {
                    heard.push(String::from_utf8_lossy(line).into_owned());
                    line == b"finished=yes"
                };
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

    fn says(&self, file: &str) {
        std::fs::write(self.path().join(file), "").unwrap();
    }

    fn go(&self) {
        self.says("rest");
        self.says("go");
    }

    /// Waits until so many have come to the batch that has not begun.
    async fn come(&self, count: usize) {
        let come = |queue: &Queue| {
            queue.open.as_ref().is_some_and(|open| locked(&open.state.members).len() >= count)
        };
        while !locked(&self.removals.0).values().any(come) {
            tokio::task::yield_now().await;
        }
    }

    fn is_empty(&self) -> bool {
        locked(&self.removals.0).is_empty()
    }
}

fn about(id: &str) -> Vec<String> {
    ["begun=all".to_owned(), format!("about=images of {id}"), "finished=yes".to_owned()].to_vec()
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
    assert!(house.is_empty());
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
    assert!(house.is_empty());
}

#[tokio::test]
async fn who_leaves_before_it_began_is_not_in_it() {
    let house = House::new();
    let first = house.removes("a", false);
    house.calls(1).await;
    let b = house.removes("b", false);
    let c = house.removes("c", false);
    house.come(2).await;
    b.abort();
    assert_eq!(house.calls(2).await, ["1", "1"]);
    house.go();
    assert_eq!(first.await.unwrap(), (about("a"), 1));
    assert_eq!(c.await.unwrap(), (about("c"), 1));
}

#[tokio::test]
async fn a_batch_that_all_left_is_forgotten() {
    let house = House::new();
    let first = house.removes("a", false);
    house.calls(1).await;
    let b = house.removes("b", false);
    house.come(1).await;
    b.abort();
    assert!(b.await.unwrap_err().is_cancelled());
    house.go();
    assert_eq!(first.await.unwrap(), (about("a"), 1));
    assert!(house.is_empty());
}

#[tokio::test]
async fn who_is_finished_neither_waits_for_the_others_nor_shares_their_end() {
    let house = House::new();
    let first = house.removes("a", false);
    house.calls(1).await;
    let b = house.removes("b", false);
    house.come(1).await;
    let [c, d] = ["c", "d"].map(|id| house.removes(id, false));
    assert_eq!(house.calls(2).await, ["1", "3"]);
    house.says("go");
    assert_eq!(first.await.unwrap(), (about("a"), 1));
    // The others are not finished yet.
    assert_eq!(b.await.unwrap(), (about("b"), 1));
    assert!(!c.is_finished() && !d.is_finished());
    // A call that fails behind them is nothing to them.
    house.says("fails");
    house.says("rest");
    assert_eq!(c.await.unwrap(), (about("c"), 1));
    assert_eq!(d.await.unwrap(), (about("d"), 1));
    assert!(house.is_empty());
}
