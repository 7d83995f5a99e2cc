//! Networks that ask for certain addresses, on hosts that have some already.

use std::path::PathBuf;

use serde_json::json;

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, http_get, on_host, stack_args, text};

const NEW: &str = "coulombcore-new";

/// A web server at an address of a subnet.
fn stack(bench: &Bench, name: &str, subnet: &str, address: &str) -> PathBuf {
    let compose = format!(
        "services:\n  web:\n    image: localhost/sbx-lab:1\n    command: [\"sh\", \"-c\", \"mkdir /w && echo here >/w/index.html && exec httpd -f -p 80 -h /w\"]\n    stop_signal: SIGKILL\n    networks: {{n: {{ipv4_address: {address}}}}}\nnetworks: {{n: {{ipam: {{config: [{{subnet: {subnet}}}]}}}}}}\n"
    );
    bench.stack(name, &compose)
}

/// Where the host sends what is for an address; the device and nothing that changes by itself.
fn route_to(host: &str, address: &str) -> String {
    let said = on_host(host, &["ip route get \"$1\"", address]);
    said.lines().next().unwrap_or_default().trim().to_owned()
}

/// A documentation network (RFC 5737): nobody is there.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_network_does_not_take_over_what_the_host_reaches() {
    for host in [DOCKER, PODMAN, NEW] {
        let bench = Bench::with(&[NEW]).and_watches(&[host]);
        let way = route_to(host, "198.51.100.7");
        for (subnet, address, words) in [
            ("198.51.100.0/24", "198.51.100.7", "the host's own traffic"),
            ("0.0.0.0/1", "10.1.1.1", "the host's own traffic"),
            ("10.0.0.0/8", "10.1.1.1", "wider than /16"),
            ("192.0.2.0/24", "192.0.2.99", "the host's own traffic"),
        ] {
            let repo = stack(&bench, "far", subnet, address);
            let plan = bench.try_stack(host, &repo, &["--dry-run"]);
            assert_eq!(plan.json()["preview"]["refusals"][0]["allow"], "host-network", "{plan:#?}");
            let ran = bench.try_stack(host, &repo, &[]);
            let told = ran.error_with_hint("invalid_input").to_string();
            assert!(told.contains(words), "{subnet}: {ran:#?}");
        }
        assert_eq!((bench.stored().len(), route_to(host, "198.51.100.7")), (0, way));
        bench.assert_as_before();
    }
}

fn of_two_sandboxes_with_one_subnet_the_second_is_refused(host: &'static str, third: u32) {
    let bench = Bench::with(&[NEW]).and_watches(&[host]);
    // Other tests run beside this one.
    let of = format!("10.{}.{}", 200 + third, std::process::id() % 250);
    let repo = stack(&bench, "fixed", &format!("{of}.0/24"), &format!("{of}.7"));
    let first = bench.create_stack(host, &repo, &[]);
    let id = text(&first["id"]);
    if host == DOCKER {
        assert!(http_get(&format!("http://{of}.7:80")).contains("here"));
    }
    // The second names who has it; a part of the subnet, and a wider one, are no better.
    for subnet in
        [format!("{of}.0/24"), format!("{of}.128/25"), format!("10.{}.0.0/16", 200 + third)]
    {
        let repo = stack(&bench, "second", &subnet, &format!("{of}.200"));
        let second = bench.try_stack(host, &repo, &[]);
        let error = second.error_with_hint("invalid_input");
        let said = format!("the network sbx-{id}_n of another sandbox has {of}.0/24");
        assert!(error.to_string().contains(&said), "{error:#}");
        let plan = bench.try_stack(host, &repo, &["--dry-run"]).json();
        assert!(plan["preview"]["refusals"].to_string().contains(&said), "{plan:#}");
    }
    assert_eq!(bench.stored().len(), 1);
    // Its own is no obstacle.
    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    bench.ok(["destroy", &id]);
    let again = bench.create_stack(host, &repo, &[]);
    bench.ok(["destroy", &text(&again["id"])]);
    bench.assert_as_before();
}

each_case! {
    of_two_sandboxes_with_one_subnet_the_second_is_refused {
        on_docker: DOCKER, 1;
        with_podman_compose_1_6: NEW, 3;
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn podman_compose_1_0_makes_no_subnets_and_that_is_said() {
    let bench = Bench::watching(&[PODMAN]);
    let of = format!("10.202.{}", std::process::id() % 250);
    let repo = stack(&bench, "fixed", &format!("{of}.0/24"), &format!("{of}.7"));
    let made = bench.create_stack(PODMAN, &repo, &[]);
    let said = made["rewrites"].to_string();
    assert!(said.contains("networks.n.ipam") && said.contains("services.web.networks"), "{said}");
    bench.ok(["destroy", &text(&made["id"])]);
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_profile_that_allows_the_hosts_network_may_take_a_route() {
    let bench = Bench::watching(&[DOCKER]);
    let profile = bench.profile("routes", "compose: {ports: ephemeral, allow: [host-network]}");
    let repo = stack(&bench, "doc", "203.0.113.0/24", "203.0.113.7");
    let made = bench.ok(stack_args(&profile, DOCKER, &repo, &[]));
    let way = route_to(DOCKER, "203.0.113.7");
    bench.ok(["destroy", &text(&made["id"])]);
    assert!(way.contains("dev br-"), "{way}");
    assert_eq!(bench.get(&text(&made["id"]))["leftovers"], json!([]));
    bench.assert_as_before();
}
