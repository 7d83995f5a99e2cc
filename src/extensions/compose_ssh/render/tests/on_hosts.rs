//! Refusals because of the host: addresses that lead somewhere there, and builds that its engine does not keep in.

use super::*;
use crate::domain::compose_host::{Subnet, TakenSubnet};
use crate::domain::facts::{Flavour, Runtime};

fn network(body: &str) -> Case {
    let text = format!(
        "services: {{web: {{image: app:1, networks: [n]}}}}\nnetworks: {{n: {{{body}}}}}\n"
    );
    let mut case = Case::new(&text);
    case.host.taken = Some(vec![TakenSubnet {
        subnet: Subnet::parse("10.9.0.0/16").unwrap(),
        why: "the host has a route to 10.9.0.0/16 (tun0)".into(),
    }]);
    case
}

#[test]
fn a_network_takes_nothing_that_the_host_reaches() {
    for (body, path) in [
        ("ipam: {config: [{subnet: 198.51.100.0/24}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 0.0.0.0/1}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 169.254.0.0/16}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 100.64.0.0/16}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: '2001:db8::/64'}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 'fc00::/64'}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: '::ffff:10.5.0.0/112'}]}", "ipam.config[0].subnet"),
        // Private, and everything: wider than anybody needs.
        ("ipam: {config: [{subnet: 10.0.0.0/8}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 'fd00::/8'}]}", "ipam.config[0].subnet"),
        // More and less specific than the route.
        ("ipam: {config: [{subnet: 10.9.7.0/24}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 10.9.0.0/16}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 10.5.0.0/24, gateway: 10.6.0.1}]}", "ipam.config[0].gateway"),
        (
            "ipam: {config: [{subnet: 10.5.0.0/24, ip_range: 10.5.0.0/16}]}",
            "ipam.config[0].ip_range",
        ),
        (
            "ipam: {config: [{subnet: 10.5.0.0/24, aux_addresses: {a: 192.0.2.1}}]}",
            "ipam.config[0].aux_addresses.a",
        ),
        ("ipam: {driver: dhcp}", "ipam.driver"),
        ("ipam: {driver: host-local}", "ipam.driver"),
        ("ipam: {options: {a: b}}", "ipam.options"),
        ("driver: macvlan", "driver"),
        (
            "driver_opts: {com.docker.network.bridge.gateway_mode_ipv4: nat-unprotected}",
            "driver_opts.com.docker.network.bridge.gateway_mode_ipv4",
        ),
        (
            "driver_opts: {com.docker.network.bridge.gateway_mode_ipv6: routed}",
            "driver_opts.com.docker.network.bridge.gateway_mode_ipv6",
        ),
        (
            "driver_opts: {com.docker.network.bridge.name: eth0}",
            "driver_opts.com.docker.network.bridge.name",
        ),
        (
            "driver_opts: {com.docker.network.bridge.host_binding_ipv4: 0.0.0.0}",
            "driver_opts.com.docker.network.bridge.host_binding_ipv4",
        ),
        (
            "driver_opts: {com.docker.network.bridge.trusted_host_interfaces: eth0}",
            "driver_opts.com.docker.network.bridge.trusted_host_interfaces",
        ),
        ("driver_opts: {parent: eth0}", "driver_opts.parent"),
        ("driver_opts: {vlan: '7'}", "driver_opts.vlan"),
        ("driver_opts: {isolate: strict}", "driver_opts.isolate"),
    ] {
        let case = network(body);
        let refusals = case.refusals();
        assert_eq!(refusals.len(), 1, "{body}: {refusals:?}");
        assert_eq!(refusals[0].path, format!("networks.n.{path}"), "{body}");
        assert_eq!(word(&refusals[0]), Some("host-network"), "{body}");
        network(body).allow(&[Allowance::HostNetwork]).render();
    }
}

#[test]
fn what_is_no_network_is_refused_whatever_the_profile_allows() {
    for (body, path) in [
        ("ipam: {config: [{subnet: 10.5.0.0}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: '10.5.0.0/24,10.6.0.0/24'}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{gateway: 10.5.0.1}]}", "ipam.config[0].subnet"),
        ("ipam: {config: [{subnet: 10.5.0.0/24}, {subnet: 10.5.0.0/16}]}", "ipam.config[1].subnet"),
        ("ipam: {config: [x]}", "ipam.config[0]"),
        ("ipam: {config: [{subnet: 10.5.0.0/24, odd: 1}]}", "ipam.config[0].odd"),
        ("ipam: {odd: 1}", "ipam.odd"),
        ("driver_opts: {mtu: '1500,vlan=7'}", "driver_opts.mtu"),
        ("ipam: {config: [{subnet: 10.5.0.0/24, gateway: 10.5.0.1/24}]}", "ipam.config[0].gateway"),
        ("internal: perhaps", "internal"),
        ("enable_ipv6: 'yes,o=x'", "enable_ipv6"),
    ] {
        let refusals = network(body).allow(&[Allowance::HostNetwork]).refusals();
        let found: Vec<_> =
            refusals.iter().map(|refusal| (refusal.path.as_str(), word(refusal))).collect();
        assert_eq!(found, [(format!("networks.n.{path}").as_str(), None)], "{body}");
    }
}

#[test]
fn an_own_subnet_and_plain_options_are_rendered_in_one_form() {
    let body = "driver: bridge, internal: true, attachable: true, driver_opts: {com.docker.network.driver.mtu: 1400, com.docker.network.bridge.enable_icc: 'false'}, ipam: {driver: default, x-a: 1, config: [{subnet: 10.5.0.9/24, gateway: 10.5.0.1, ip_range: 10.5.0.128/25, aux_addresses: {a: 10.5.0.2}}, {subnet: 'FD12::/64'}]}";
    let (file, rendered) = network(body).render();
    let config = json!([
        {"subnet": "10.5.0.0/24", "gateway": "10.5.0.1", "ip_range": "10.5.0.128/25", "aux_addresses": {"a": "10.5.0.2"}},
        {"subnet": "fd12::/64"},
    ]);
    assert_eq!(file["networks"]["n"]["ipam"], json!({"driver": "default", "config": config}));
    assert!(rendered.fixed_addresses);
    assert!(!network("internal: true").render().1.fixed_addresses);
}

#[test]
fn a_container_has_an_address_of_its_own_network_or_none() {
    let with = |settings: &str, body: &str| {
        Case::new(&format!(
            "services: {{web: {{image: app:1, networks: {{n: {settings}}}}}}}\nnetworks: {{n: {{{body}}}}}\n"
        ))
    };
    let body = "ipam: {config: [{subnet: 10.5.0.0/24}, {subnet: 'fd12::/64'}]}";
    for fine in [
        "{ipv4_address: 10.5.0.7}",
        "{ipv6_address: 'fd12::7'}",
        "{aliases: [a], priority: 5}",
        "{ipv4_address: }",
        "",
    ] {
        with(fine, body).render();
    }
    for (settings, key, body) in [
        ("{ipv4_address: 198.51.100.7}", "ipv4_address", body),
        ("{ipv4_address: 'fd12::7'}", "ipv4_address", body),
        ("{ipv4_address: '10.5.0.7,x=y'}", "ipv4_address", body),
        ("{ipv6_address: 'fd13::7'}", "ipv6_address", body),
        ("{ipv4_address: 10.5.0.7}", "ipv4_address", ""),
        ("{link_local_ips: [169.254.169.254]}", "link_local_ips", body),
        (
            "{driver_opts: {com.docker.network.endpoint.sysctls: net.ipv4.conf.IFNAME.route_localnet=1}}",
            "driver_opts",
            body,
        ),
    ] {
        let refusals = with(settings, body).refusals();
        let found: Vec<_> =
            refusals.iter().map(|refusal| (refusal.path.as_str(), word(refusal))).collect();
        assert_eq!(
            found,
            [(format!("services.web.networks.n.{key}").as_str(), Some("host-network"))],
            "{settings}"
        );
    }
}

#[test]
fn a_build_needs_a_word_where_the_builder_lets_it_out() {
    let podman = |engine: &str, version: Option<&str>, podman_behind| Runtime {
        flavour: Flavour::PodmanCompose,
        version: "1.6.0".into(),
        command: vec!["podman-compose".into()],
        engine: engine.into(),
        engine_version: version.map(str::to_owned),
        engine_id: None,
        rootless: false,
        chosen: "detected".into(),
        podman_behind,
    };
    for (engine, version, behind, escapes) in [
        ("podman", Some("4.3.1"), false, true),
        ("podman", Some("4.9.3"), false, true),
        ("podman", Some("4.9.4"), false, true),
        ("podman", Some("5.2.5"), false, true),
        ("podman", Some("5.3.1"), false, true),
        ("podman", Some("5.3.2"), false, false),
        ("podman", Some("5.3.2-rhel"), false, false),
        ("podman", Some("5.10"), false, false),
        ("podman", Some("3.4.4"), false, true),
        ("podman", None, false, true),
        ("podman", Some("of late"), false, true),
        ("docker", Some("4.3.1"), true, true),
        ("docker", Some("5.4.0"), true, false),
        ("docker", Some("1.13.1"), false, false),
    ] {
        let mut case = Case::web("build: .").file("Dockerfile", "FROM scratch\n");
        case.host.builds_escape = podman(engine, version, behind).builds_escape();
        assert_eq!(case.host.builds_escape.is_some(), escapes, "{engine} {version:?}");
        if !escapes {
            case.render();
            continue;
        }
        let refusals = case.refusals();
        assert_eq!(
            (refusals[0].path.as_str(), word(&refusals[0])),
            ("services.web.build", Some("builds")),
            "{refusals:?}"
        );
        assert!(
            refusals.len() == 1 && refusals[0].message.contains("CVE-2024-1753"),
            "{refusals:?}"
        );
        case.allow(&[Allowance::Builds]).render();
    }
}

#[test]
fn what_podman_compose_1_0_does_not_give_a_network_is_said() {
    let mut case = network(
        "driver: bridge, internal: true, driver_opts: {mtu: 1400}, ipam: {config: [{subnet: 10.5.0.0/24}]}",
    );
    case.dialect = Dialect::Narrow;
    let (file, rendered) = case.render();
    assert!(!rendered.fixed_addresses && file["networks"]["n"]["internal"] == true);
    let said = case.rewrites();
    for key in ["driver", "driver_opts", "ipam"] {
        assert!(
            said.contains(&format!(
                "networks.n.{key}: is left out: podman-compose 1.0 does not know it"
            )),
            "{said:?}"
        );
        assert!(file["networks"]["n"].get(key).is_none());
    }
    // Rules that hold elsewhere hold there as well.
    let mut case = network("driver: macvlan");
    case.dialect = Dialect::Narrow;
    assert_eq!(case.refusals().len(), 1);
}
