//! What an idle dashboard costs with hosts that it polls: 3 of the lab, and 20 names of its Docker host.

use std::fmt::Write as _;
use std::path::Path;

use crate::console;
use crate::fixture::Fixture;

const COUNT: usize = 100;

pub(crate) fn measure(fixture: &Fixture, lab: &Path) {
    let three = ["sandboxer01", "coulombcore", "vm-haskell"].map(|ssh| (ssh.to_owned(), ssh));
    let twenty: Vec<_> = (1..=20).map(|n| (format!("host-{n}"), "sandboxer01")).collect();
    println!("{:<44} {:>11} {:>11} {:>11}", "idle", "processor", "terminal", "memory");
    let with_records = Fixture::with_records(&fixture.join("polled"), COUNT);
    for (name, hosts) in [("3 hosts", &three[..]), ("20 hosts", &twenty)] {
        let config = fixture.join("hosts.yaml");
        std::fs::write(&config, configured(hosts, lab)).expect("a configuration");
        let mut like = with_records.sandboxer();
        like.env("SANDBOXER_CONFIG", &config);
        console::idle(&format!("idle, {COUNT} records, {name} polled"), &like, COUNT);
    }
}

fn configured(hosts: &[(String, &str)], lab: &Path) -> String {
    hosts.iter().fold("hosts:\n".to_owned(), |mut text, (name, ssh)| {
        let (config, root) = (lab.join("ssh_config"), lab.join("hosts").join(ssh));
        let _ = write!(
            text,
            "  {name}:\n    ssh: {ssh}\n    ssh_config: {}\n    workspace_root: {}\n",
            config.display(),
            root.join("sandboxes").display()
        );
        text
    })
}
