//! Words with which the compose tools tell their engines of the files that the renderer writes: `tests/lab/up` first, then
//! `tests/run --test lab render::`. `just fuzz` runs it long. The generator and the judge are those of `tests/fuzz`.

// The judge is tables: what is fine stands with its kind.

mod inspect;
mod layers;
mod tools;

use std::fs;
use std::process::{Command, Stdio};

use crate::fuzz::course::{Tally, case};
use crate::fuzz::seed::Plan;
use crate::fuzz::world::{HOSTS, Host, World, rendered};
use sandboxer::extensions::compose_ssh::render::Dialect;
use tools::{
    Compose, ComposeV1, DEBIAN, Lines, PodmanCompose, Tool, of_lab, pretend_buildx, project, script,
};

/// A world of its own for a test, with the files that tools look at.
fn world() -> (tempfile::TempDir, World) {
    let folder = tempfile::Builder::new().prefix("sbx-fuzz.").tempdir().unwrap();
    let world = World::at(folder.path().canonicalize().unwrap().to_str().unwrap());
    world.make().unwrap();
    (folder, world)
}

fn hosts(dialect: Dialect) -> impl Iterator<Item = Host> {
    HOSTS.into_iter().filter(move |host| host.dialect == dialect)
}

/// Every case for every host of the dialect, read back by the tool.
fn run(world: &World, dialect: Dialect, tool: &mut dyn Tool, count: u64) {
    let plan = Plan::read(count);
    let mut tally = Tally::default();
    for number in plan.cases() {
        for host in hosts(dialect) {
            tally.judge(world, (plan.seed, number), host, &mut |yaml| tool.read(world, host, yaml));
        }
    }
    tally.end();
    honest(world, dialect, tool, plan);
}

/// Files that ask for nothing are rendered, and the tool takes most of what is rendered.
fn honest(world: &World, dialect: Dialect, tool: &mut dyn Tool, plan: Plan) {
    let (mut all, mut kept, mut taken) = (0, 0, 0);
    for number in plan.cases().take(100) {
        for host in hosts(dialect) {
            all += 1;
            let Ok(rendered) = rendered(&case(plan.seed, number, false).files(), world, host)
            else {
                continue;
            };
            kept += 1;
            taken += usize::from(tool.read(world, host, &rendered.yaml).is_some());
        }
    }
    println!("of {all} honest files {kept} are rendered, {taken} taken by the tool");
    assert!(kept * 2 >= all && taken * 2 >= kept, "{kept} of {all} rendered, {taken} taken");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn podman_compose_1_0_tells_podman_nothing_that_leads_out() {
    let (_folder, world) = world();
    run(&world, Dialect::Narrow, &mut PodmanCompose::start(&world, DEBIAN), 600);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn podman_compose_1_6_tells_podman_nothing_that_leads_out() {
    let (_folder, world) = world();
    run(
        &world,
        Dialect::Podman,
        &mut PodmanCompose::start(&world, &of_lab("podman-compose-1.6")),
        250,
    );
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn docker_compose_1_29_reads_nothing_that_leads_out() {
    let (_folder, world) = world();
    run(&world, Dialect::V1, &mut ComposeV1(Lines::start(&world, &["read_v1.py"])), 600);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn docker_compose_2_reads_nothing_that_leads_out() {
    let (_folder, world) = world();
    let mut tool = Compose { program: of_lab("compose-debian"), bakes: false };
    run(&world, Dialect::Full, &mut tool, 250);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn docker_compose_5_reads_and_bakes_nothing_that_leads_out() {
    let (_folder, world) = world();
    pretend_buildx(&world);
    let mut tool = Compose { program: of_lab("compose-pypi"), bakes: true };
    run(&world, Dialect::Full, &mut tool, 250);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn docker_shows_nothing_that_leads_out_in_what_compose_made() {
    let (_folder, world) = world();
    let tool = of_lab("compose-debian");
    inspect::what_docker_made_of_clean_files(&world, &tool, 10);
    inspect::what_docker_made_of_clean_files(&world, "docker-compose", 4);
}

/// The runner replaces an exec; here nothing is replaced but podman.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn podman_compose_in_one_process_calls_podman_as_the_program_does() {
    let (_folder, world) = world();
    let bin = format!("{}/bin", world.scratch);
    fs::create_dir_all(&bin).unwrap();
    let (log, has) = (format!("{bin}/calls"), format!("{bin}/has"));
    script(
        &format!("{bin}/podman"),
        &format!(
            "{{ for word; do printf '%s\\036' \"$word\"; done; printf '\\035'; }} >>{log}\n\
             for last; do :; done\n\
             case \"$1 $2\" in\n\
             '--version '*) echo podman version 4.3.1 ;;\n\
             'ps '*) echo '[]' ;;\n\
             'network exists' | 'volume inspect' | 'pod exists') grep -qxF \"$1 $last\" {has} 2>/dev/null || exit 1; echo '[]' ;;\n\
             'network create' | 'volume create' | 'pod create') echo \"$1 $last\" >>{has} ;;\n\
             'inspect '*) exit 1 ;;\n\
             esac\n"
        ),
    );
    let mut compared = 0;
    for (folder, dialect) in
        [(DEBIAN.to_owned(), Dialect::Narrow), (of_lab("podman-compose-1.6"), Dialect::Podman)]
    {
        let mut inner = PodmanCompose::start(&world, &folder);
        let host = hosts(dialect).find(|host| host.engine == "4.3.1").unwrap();
        // Debian's waits a second after each container.
        for number in 0..if dialect == Dialect::Narrow { 4 } else { 12 } {
            let Ok(rendered) = rendered(&case(1, number, number % 2 == 1).files(), &world, host)
            else {
                continue;
            };
            let (calls, _, _) = inner.calls(host.engine, &rendered.yaml);
            for file in [&log, &has] {
                let _ = fs::remove_file(file);
            }
            let mut program = Command::new("/usr/bin/python3");
            program.args([
                "-m",
                "podman_compose",
                "-p",
                &project(),
                "-f",
                "compose.yaml",
                "up",
                "-d",
            ]);
            program
                .env_clear()
                .env("PATH", format!("{bin}:/usr/bin:/bin"))
                .env("PYTHONPATH", &folder);
            program
                .env("LANG", "C.UTF-8")
                .env("TMPDIR", &world.scratch)
                .env("HOME", &world.scratch);
            program.current_dir(&world.sandbox).stdin(Stdio::null());
            program.output().unwrap();
            let written = fs::read_to_string(&log).unwrap_or_default();
            let outer: Vec<Vec<String>> = written
                .split_terminator('\u{1d}')
                .map(|call| call.split_terminator('\u{1e}').map(str::to_owned).collect())
                .collect();
            assert_eq!(sorted(outer), sorted(calls), "{}", rendered.yaml);
            compared += 1;
        }
    }
    assert!(compared > 4, "{compared} compared");
}

/// Options of a mount come out of a Python set, in any order; a Dockerfile of a moment has any name.
fn sorted(calls: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let order = |word: String| {
        if word.contains("/scratch/tmp") {
            return "a Dockerfile".to_owned();
        }
        let Some((path, options)) = word.rsplit_once(':').filter(|(path, _)| path.starts_with('/'))
        else {
            return word;
        };
        let mut options: Vec<&str> = options.split(',').collect();
        options.sort_unstable();
        format!("{path}:{}", options.join(","))
    };
    calls.into_iter().map(|call| call.into_iter().map(order).collect()).collect()
}
