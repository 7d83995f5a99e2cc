//! The judge itself: one word each that led out, and words of honest files that do not.

use serde_json::{Value, json};

use crate::fuzz::judge::{Judge, Promise};
use crate::fuzz::world::World;

fn world() -> World {
    World::at("/w")
}

const WS: &str = "/w/sandboxes/sbx-a1b2c3d4/workspace";

fn of_words(words: &str) -> Vec<Promise> {
    let world = world();
    let mut judge = Judge::new(&world, "5.3.2");
    let words: Vec<String> =
        words.replace("WS", WS).split(' ').map(|word| word.replace('~', " ")).collect();
    judge.podman(&words);
    let mut promises: Vec<Promise> = judge.close().iter().map(|finding| finding.promise).collect();
    promises.sort();
    promises.dedup();
    promises
}

/// Finding of one more option on an honest container.
fn container(options: &str) -> Vec<Promise> {
    of_words(&format!(
        "create --name=sbx-a1b2c3d4_web_1 --label sandboxer.id=a1b2c3d4 {options} nginx -v /:/host"
    ))
}

#[test]
fn words_that_led_out_break_their_promise() {
    for (options, promise) in [
        ("-v /etc:/x", Promise::Mounts),
        ("-v WS/../x:/x", Promise::Mounts),
        ("-v WS/out:/x", Promise::Mounts),
        ("-v sbx-a1b2c3d4_data:/x:O,upperdir=/o,workdir=/p", Promise::Mounts),
        ("-v sbx-victim_data:/x", Promise::Others),
        ("-v sbx-a1b2c3d4e_data:/x", Promise::Others),
        (
            "--mount type=volume,source=sbx-a1b2c3d4_data,destination=/x,source=sbx-victim_data",
            Promise::Others,
        ),
        (
            "--mount type=volume,source=sbx-a1b2c3d4_data,destination=/x,type=bind,src=/",
            Promise::Mounts,
        ),
        ("-v WS/app:/x:ro,rw", Promise::Repeats),
        ("--log-opt=max-size=10m,path=/o", Promise::HostFiles),
        ("--log-opt=\"path=/o\"", Promise::HostFiles),
        ("--annotation a=b,run.oci.handler=krun", Promise::Labels),
        ("--label io.podman.compose.project=sbx-victim", Promise::Labels),
        ("--label sandboxer.id=victim", Promise::Labels),
        ("--label io.containers.autoupdate=registry", Promise::Labels),
        ("--network=sbx-a1b2c3d4_back:alias=a,ip=169.254.169.254", Promise::Networks),
        ("--network=sbx-victim_default", Promise::Others),
        ("--net sbx-a1b2c3d4_back,sbx-victim_default", Promise::Others),
        ("--network=container:sbx-victim_web_1", Promise::Others),
        ("--network host", Promise::Namespaces),
        ("--pid host", Promise::Namespaces),
        ("--userns keep-id", Promise::Namespaces),
        ("--sysctl net.a=1,kernel.core_pattern=x", Promise::Namespaces),
        ("--cap-add CHOWN,SYS_ADMIN", Promise::Privileges),
        ("--privileged", Promise::Privileges),
        ("--device /dev/sda", Promise::Privileges),
        ("--ulimit host", Promise::Privileges),
        ("--secret x", Promise::Others),
        ("--env-file /etc/x", Promise::HostFiles),
        ("-e HOME", Promise::HostFiles),
        ("-e LD_*", Promise::HostFiles),
        ("-p 8080:80", Promise::Ports),
        ("--new-option=1", Promise::Unknown),
        ("-v WS:/a -v WS/app:/b", Promise::Replaceable),
    ] {
        assert!(container(options).contains(&promise), "{options}: {:?}", container(options));
    }
}

#[test]
fn words_of_honest_files_break_none() {
    for options in [
        "-v WS/app:/x:ro,rprivate -v sbx-a1b2c3d4_data:/y -v /z --tmpfs /run:size=1m,mode=1777",
        "--mount type=volume,source=sbx-a1b2c3d4_data,destination=/x -e A=,path=/o,source=/ --label com.example.a=b,c=d",
        "--network=sbx-a1b2c3d4_back:alias=web,alias=api,ip=172.30.7.9 -p 127.0.0.1::80/udp --log-driver=k8s-file --log-opt=max-size=1m",
        "--security-opt no-new-privileges --sysctl net.core.somaxconn=1 --ulimit nofile=1:2 --pod=pod_sbx-a1b2c3d4",
        "-w -v --entrypoint [\"a,b\"] --cap-add CHOWN -v /etc/localtime:/etc/localtime:ro",
    ] {
        assert_eq!(container(options), [], "{options}");
    }
}

#[test]
fn builds_networks_and_volumes_are_read_too() {
    let build = "build -f WS/app/Dockerfile -t sbx-a1b2c3d4-built:web";
    for (words, promise) in [
        (format!("{build} --secret id=a,src=WS/tok.txt,src=/etc/x WS/app"), Promise::HostFiles),
        (format!("{build} --cache-from TYPE=local,src=/o WS/app"), Promise::HostFiles),
        (format!("{build} --build-context=a=/o WS/app"), Promise::HostFiles),
        (format!("{build} --label com.docker.stack.namespace=v WS/app"), Promise::Labels),
        (format!("{build} /o"), Promise::HostFiles),
        (format!("{build} https://example.com/x.git"), Promise::Others),
        ("build -f /o/D -t sbx-a1b2c3d4-built:web WS/app".into(), Promise::HostFiles),
        ("build -f WS/D -t sbx-victim-built:web WS/app".into(), Promise::Others),
        ("build -f WS/D -t sbx-a1b2c3d4-web WS/app".into(), Promise::Names),
        ("network create --label sandboxer.id=a1b2c3d4 --subnet 0.0.0.0/1 sbx-a1b2c3d4_x".into(), Promise::Networks),
        ("network create --label sandboxer.id=a1b2c3d4 --opt mtu=1,parent=eth0 sbx-a1b2c3d4_x".into(), Promise::Networks),
        ("network create --label sandboxer.id=a1b2c3d4 sbx-victim_x".into(), Promise::Others),
        ("network create sbx-a1b2c3d4_x".into(), Promise::Names),
        ("volume create --label sandboxer.id=a1b2c3d4 --opt type=tmpfs --opt device=/o --opt o=bind,x=1 sbx-a1b2c3d4_x".into(), Promise::Mounts),
        ("rm -f sbx-victim_web_1".into(), Promise::Unknown),
    ] {
        assert!(of_words(&words).contains(&promise), "{words}: {:?}", of_words(&words));
    }
    assert_eq!(
        of_words(&format!(
            "{build} --build-arg A=--privileged,x --secret id=a,src=WS/tok.txt WS/app"
        )),
        []
    );
    let labelled = "--label sandboxer.id=a1b2c3d4";
    assert_eq!(
        of_words(&format!("network create {labelled} --subnet 172.30.7.0/24 sbx-a1b2c3d4_x")),
        []
    );
    assert_eq!(
        of_words(&format!(
            "volume create {labelled} --opt type=tmpfs --opt o=size=1m sbx-a1b2c3d4_x"
        )),
        []
    );
}

fn of_document(document: &Value) -> Vec<Promise> {
    let world = world();
    let mut judge = Judge::new(&world, "28.0.0");
    judge.document(document, true);
    let mut promises: Vec<Promise> = judge.close().iter().map(|finding| finding.promise).collect();
    promises.sort();
    promises.dedup();
    promises
}

#[test]
fn a_resolved_file_is_read_as_docker_reads_it() {
    let service = |key: &str, value: Value| {
        let mut file = json!({"services": {"web": {"image": "nginx", "labels": {"sandboxer.id": "a1b2c3d4"}}}});
        file["services"]["web"][key] = value;
        of_document(&file)
    };
    assert_eq!(service("command", json!(["-v", "/:/x"])), []);
    assert_eq!(
        service("volumes", json!([{"type": "bind", "source": WS, "target": "/x", "bind": {}}])),
        []
    );
    for (key, value, promise) in [
        ("volumes", json!([{"type": "bind", "source": "/etc", "target": "/x"}]), Promise::Mounts),
        (
            "volumes",
            json!([format!("{WS}:/w:ro,rw"), format!("{WS}/app:/s")]),
            Promise::Replaceable,
        ),
        ("volumes", json!([{"type": "npipe", "source": "x", "target": "/x"}]), Promise::Unknown),
        (
            "build",
            json!({"context": format!("{WS}/app"), "dockerfile": "../../x"}),
            Promise::HostFiles,
        ),
        ("privileged", json!(true), Promise::Privileges),
        ("pid", json!("host"), Promise::Namespaces),
        ("ports", json!([{"target": 80, "published": "80"}]), Promise::Ports),
        ("networks", json!({"default": {"ipv4_address": "198.51.100.7"}}), Promise::Networks),
        (
            "labels",
            json!({"sandboxer.id": "a1b2c3d4", "com.docker.stack.namespace": "x"}),
            Promise::Labels,
        ),
        ("new_key", json!(1), Promise::Unknown),
    ] {
        assert!(
            service(key, value.clone()).contains(&promise),
            "{key} {value}: {:?}",
            service(key, value.clone())
        );
    }
    let network = |value: Value| of_document(&json!({"networks": {"n": value}}));
    assert!(
        network(json!({"name": "sbx-victim_n", "labels": {"sandboxer.id": "a1b2c3d4"}}))
            .contains(&Promise::Others)
    );
    assert!(
        network(json!({"ipam": {"config": [{"subnet": "198.51.100.0/24"}]}}))
            .contains(&Promise::Networks)
    );
}
