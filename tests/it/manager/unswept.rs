//! What is said where nothing that sweeps has run for a while.

use sandboxer::client::CheckState;
use sandboxer::domain::request::{Check, CreateRequest};
use sandboxer::domain::sweep::SweepRequest;

use crate::test_env::{TestEnv, test_env};

fn living(ttl: &str) -> CreateRequest {
    CreateRequest { ttl: Some(ttl.into()), ..CreateRequest::default() }
}

impl TestEnv {
    async fn remarks(&self, ttl: &str) -> Vec<String> {
        let planned = self.manager.plan_create(&living(ttl)).await.unwrap().route.unwrap().remarks;
        let (record, ended) = self.create(living(ttl)).await;
        assert_eq!(ended, Ok(()));
        assert_eq!(record.route.unwrap().remarks, planned);
        planned
    }

    async fn sweep_check(&self) -> Check {
        let checks = self.manager.doctor(false).await.unwrap();
        checks.into_iter().find(|check| check.name == "sweep").unwrap()
    }
}

#[tokio::test]
async fn a_create_with_a_deadline_and_doctor_say_when_nothing_sweeps() {
    let house = test_env();
    let idle = house.sweep_check().await;
    assert_eq!(idle.state, CheckState::Ok);
    assert_eq!(idle.message.as_str(), "nothing has swept yet; nothing has a deadline");
    let [remark] = &house.remarks("30m").await[..] else { panic!("one remark") };
    assert!(remark.starts_with("nothing has swept yet"), "{remark}");
    assert!(remark.contains("`sandboxer sweep`"), "{remark}");
    let check = house.sweep_check().await;
    assert_eq!(check.state, CheckState::Warning);
    assert_eq!(check.message.as_str(), "nothing has swept yet, and 1 sandbox has a deadline");
    assert!(check.hint.unwrap().contains("dashboard"));

    house.other.sweep(&SweepRequest::default()).await.unwrap();
    assert_eq!(house.remarks("30m").await, Vec::<String>::new());
    house.script.pass(9 * 60);
    assert_eq!(house.remarks("30m").await, Vec::<String>::new());
    assert_eq!(house.sweep_check().await.state, CheckState::Ok);
    house.script.pass(2 * 60);
    let [remark] = &house.remarks("30m").await[..] else { panic!("one remark") };
    assert!(remark.starts_with("nothing has swept for 11m"), "{remark}");
    assert_eq!(house.sweep_check().await.state, CheckState::Warning);
    // A note from a time that is still to come says nothing.
    house.script.jump(-3600);
    assert!(!house.remarks("30m").await.is_empty());
}

#[tokio::test]
async fn a_sandbox_without_deadline_needs_nobody_who_sweeps() {
    let house = test_env();
    let profiles = house.folder.path().join("profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    let text = "id: profile.endless\nversion: 1.0.0\nsummary: s\nextension: ext.compose-ssh\nttl: none\n\
        config: {workspace_only: true}\n";
    std::fs::write(profiles.join("endless.yaml"), text).unwrap();
    let request = CreateRequest { profile: Some("endless".into()), ..CreateRequest::default() };
    let (record, ended) = house.create(request).await;
    assert_eq!((ended, record.expires_at), (Ok(()), None));
    let remarks = record.route.unwrap().remarks;
    assert!(!remarks.iter().any(|remark| remark.contains("swept")), "{remarks:?}");
    assert_eq!(house.sweep_check().await.state, CheckState::Ok);
}
