//! Which host takes a sandbox, and what is said of those that do not.

use std::collections::BTreeMap;

use sandboxer::domain::Code;
use sandboxer::domain::request::CreateRequest;
use sandboxer::domain::sweep::SweepRequest;

use super::house::{house, manager_with};

/// A stack from a directory.
fn stack(repo: &tempfile::TempDir) -> CreateRequest {
    let inputs = BTreeMap::from([("repo".to_owned(), repo.path().to_str().unwrap().to_owned())]);
    CreateRequest { profile: Some("compose-e2e".into()), inputs, ..CreateRequest::default() }
}

#[tokio::test]
async fn where_none_of_a_profiles_hosts_is_configured_the_default_host_takes_their_place() {
    let (house, repo) = (house(), tempfile::tempdir().unwrap());
    house.manager.sweep(&SweepRequest::default()).await.unwrap();
    let plan = house.manager.plan_create(&stack(&repo)).await.unwrap();
    assert!(plan.ok, "{:?}", plan.error);
    let (record, ended) = house.create(stack(&repo)).await;
    assert_eq!((ended, record.host.as_str()), (Ok(()), "local"));
    let route = record.route.unwrap();
    assert_eq!(plan.route.unwrap().remarks, route.remarks);
    let [remark] = route.remarks.as_slice() else { panic!("{:?}", route.remarks) };
    assert!(remark.contains("sandboxer01, coulombcore") && remark.contains("local"), "{remark}");
    let verdicts: Vec<_> =
        record.attempts.iter().map(|verdict| (verdict.host.as_str(), verdict.ok)).collect();
    assert_eq!(verdicts, [("sandboxer01", false), ("coulombcore", false), ("local", true)]);
    let (canary, _) = house.create(CreateRequest::default()).await;
    assert_eq!(canary.route.unwrap().remarks, Vec::<String>::new(), "it has no list");
}

#[tokio::test]
async fn where_no_host_is_left_each_ones_verdict_is_told() {
    let (house, repo) = (house(), tempfile::tempdir().unwrap());
    let manager = manager_with(house.folder.path(), &house.script, "nosuch");
    let not = |hosts: &[&str]| {
        hosts.iter().map(|host| format!("{host}: not configured")).collect::<Vec<_>>().join("; ")
    };
    for (request, hosts) in [
        (stack(&repo), &["sandboxer01", "coulombcore", "nosuch"][..]),
        (CreateRequest::default(), &["nosuch"]),
    ] {
        let fault = manager.create(request).await.unwrap_err();
        assert_eq!((&fault.code, fault.causes), (&Code::HostUnreachable, vec![not(hosts)]));
        assert_eq!(fault.details["verdicts"].as_array().unwrap().len(), hosts.len());
        assert!(fault.hint.as_ref().unwrap().contains("try --host local"), "{:?}", fault.hint);
    }
}
