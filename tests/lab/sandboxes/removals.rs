//! The scripts that remove and fill a sandbox, run here with a podman that is made up.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::sandboxes::scripts::{joined, program_in};

const TEARDOWN: [&str; 8] = [
    "transport/scripts/runtime.sh",
    "extensions/workspace/scripts/says.sh",
    "extensions/workspace/scripts/place.sh",
    "extensions/workspace/scripts/engine.sh",
    "extensions/workspace/scripts/belonging.sh",
    "extensions/workspace/scripts/bind.sh",
    "extensions/workspace/scripts/processes.sh",
    "extensions/workspace/scripts/teardown.sh",
];

/// Has what stands in files: containers `c-…`, networks `n-…`, images `i-…`. Like rootless podman it answers nobody who stands in
/// a folder that is gone, does nothing where one of several containers is gone, unless that is to be ignored, and looks
/// whether a network is used only where it is named.
const PODMAN: &str = r#"#!/bin/sh
env pwd -P >/dev/null 2>&1 || { echo 'Error: error getting current working directory' >&2; exit 125; }
cd "${0%/*}" || exit
echo "$*" >>said
verb=$1
case $verb in
  stop | rm)
    ignore=''
    case " $* " in *' --ignore '*) ignore=yes ;; esac
    for one; do
      case $one in c-*) [ -n "$ignore" ] || [ -f "$one" ] || { echo "Error: no container with name or ID \"$one\" found" >&2; exit 1; } ;; esac
    done
    [ ! -f stuck ] || { echo 'Error: container is stuck' >&2; exit 125; }
    [ "$verb" = stop ] || for one; do case $one in c-*) rm -f "$one" ;; esac; done
    ;;
  ps)
    [ ! -f deaf ] || { echo 'Error: the engine is deaf' >&2; exit 125; }
    case " $* " in *' -a --no-trunc '*) ;; *) exit 0 ;; esac
    for one in c-*; do
      [ ! -f "$one" ] || printf '%s\037"x"\037"own"\037"sbx-x"\037"sbx-x-%s-1"\037Up\n' "$one" "$one"
    done
    # Somebody removed it since.
    [ ! -f c-going ] || rm c-going
    ;;
  network)
    case $2 in
      ls) for one in n-*; do [ ! -f "$one" ] || echo "sbx-x_$one"; done ;;
      inspect)
        form=$4
        shift 4
        for one; do
          case $form in
            '{{.ID}}'?'{{.Name}}') printf '%s\037%s\n' "${one#sbx-x_}" "$one" ;;
            *) printf '%s\037"x"\037"own"\037"sbx-x"\037"%s"\n' "${one#sbx-x_}" "$one" ;;
          esac
        done
        ;;
      rm)
        case $3 in
          sbx-x_*)
            # Deaf after the second try.
            if [ -f once ]; then mv once deaf; elif [ -f then-deaf ]; then mv then-deaf once; fi
            [ ! -f used ] || { echo "Error: \"$3\" has associated containers with it" >&2; exit 2; } ;;
        esac
        rm "${3#sbx-x_}"
        ;;
    esac
    ;;
  image) [ -f "i-${3#sbx-x-}" ] || { echo 'Error: image not known' >&2; exit 125; } ;;
  rmi) rm "i-${2#sbx-x-}" ;;
esac
"#;

/// A folder with that podman, these files of its, and a root in which `sbx-x` is.
fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    program_in(folder.path(), "podman", PODMAN);
    for file in files {
        fs::write(folder.path().join(file), "").unwrap();
    }
    let workspace = folder.path().join("root/sbx-x/workspace");
    fs::create_dir_all(&workspace).unwrap();
    let manifest = "{\n  \"id\": \"x\",\n  \"owner\": \"own\",\n  \"end\": 0\n}\n";
    fs::write(folder.path().join("root/sbx-x/manifest.json"), manifest).unwrap();
    folder
}

fn command(folder: &Path, script: &str) -> Command {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut sh = Command::new("sh");
    sh.args(["-c", script, "sh"]).arg(folder.join("root"));
    sh.env("PATH", path).env("HOME", folder).env_remove("XDG_STATE_HOME");
    sh
}

/// What the removal says.
fn teardown(folder: &Path) -> String {
    teardown_with(folder, &[])
}

/// What the removal says, of some more sandboxes.
fn teardown_with(folder: &Path, more: &[&str]) -> String {
    let ran = command(folder, &joined(&TEARDOWN))
        .args(["own", "\n ", "podman", "", "0", "", "x", "1", "sbx-x-built"])
        .args(more)
        .output()
        .unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn podman_removes_the_rest_where_one_of_several_containers_is_gone() {
    let folder = folder(&["c-going", "c-web", "n-one"]);
    let said = teardown(folder.path());
    assert!(!folder.path().join("c-web").exists(), "{said}");
    assert!(!folder.path().join("n-one").exists(), "{said}");
    assert!(said.ends_with("finished=yes\n") && !said.contains("left="), "{said}");
}

#[test]
fn a_container_that_is_still_there_keeps_its_network() {
    let folder = folder(&["c-web", "n-one", "stuck"]);
    let said = teardown(folder.path());
    assert!(folder.path().join("n-one").exists(), "{said}");
    assert!(
        said.contains("done=network failed\n sbx-x_n-one\nwhy=\n its containers are still there"),
        "{said}"
    );
    assert!(said.contains("left=network\n sbx-x_n-one"), "{said}");
}

#[test]
fn a_network_that_a_stranger_uses_on_podman_stays() {
    let folder = folder(&["c-web", "n-one", "used"]);
    let said = teardown(folder.path());
    assert!(folder.path().join("n-one").exists(), "{said}");
    assert!(said.contains("has associated containers with it"), "{said}");
    assert!(said.contains("left=network\n sbx-x_n-one"), "{said}");
}

#[test]
fn built_images_go_after_the_folder_is_gone() {
    let folder = folder(&["c-web", "i-built"]);
    let said = teardown(folder.path());
    assert!(!folder.path().join("root/sbx-x").exists(), "{said}");
    assert!(said.contains("done=image removed\n sbx-x-built"), "{said}");
    assert!(!folder.path().join("i-built").exists() && !said.contains("left="), "{said}");
}

#[test]
fn one_sandbox_is_finished_with_its_images_before_the_next_ones_directory() {
    let folder = folder(&["c-web", "i-built"]);
    let said = teardown_with(folder.path(), &["y", "0", ""]);
    let sections: Vec<&str> = said.split("of=").collect();
    let [.., x, y] = &sections[..] else { panic!("{said}") };
    assert!(x.starts_with("x\ndone=container removed\n sbx-x-c-web-1\n"), "{said}");
    assert!(x.ends_with("done=image removed\n sbx-x-built\nfinished=yes\n"), "{said}");
    assert!(y.starts_with("y\ndone=container absent\n sbx-y\ndone=directory absent\n"), "{said}");
    assert!(y.ends_with("finished=yes\n"), "{said}");
    assert_eq!(said.matches("had=yes").count(), 1, "{said}");
}

#[test]
fn an_engine_that_stops_answering_about_one_sandbox_ends_only_its_removal() {
    let folder = folder(&["c-web", "n-one", "used", "then-deaf"]);
    let said = teardown_with(folder.path(), &["y", "0", ""]);
    let sections: Vec<&str> = said.split("of=").collect();
    let [.., x, y] = &sections[..] else { panic!("{said}") };
    assert!(x.starts_with("x\nerror=engine\nwords=\n"), "{said}");
    assert!(x.contains("the engine is deaf") && !x.contains("finished"), "{said}");
    assert!(folder.path().join("root/sbx-x/manifest.json").exists(), "{said}");
    assert!(y.ends_with("finished=yes\n"), "{said}");
}

/// Whoever is told that nothing was touched has gone by then; also where a shell does not end of that by itself.
#[test]
fn nothing_is_removed_for_nobody() {
    let folder = folder(&["c-web", "n-one"]);
    let script = format!("trap '' PIPE\n{}", joined(&TEARDOWN));
    let mut removal = command(folder.path(), &script)
        .args(["own", "\n ", "podman", "", "0", "", "x", "1", ""])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(removal.stdout.take());
    removal.wait().unwrap();
    assert!(folder.path().join("c-web").exists() && folder.path().join("root/sbx-x").exists());
}

/// Same for a directory that is made and filled by one call.
#[test]
fn no_directory_appears_for_nobody() {
    let folder = folder(&[]);
    fs::remove_dir_all(folder.path().join("root/sbx-x")).unwrap();
    let prepare = [
        "transport/scripts/runtime.sh",
        "extensions/workspace/scripts/says.sh",
        "extensions/workspace/scripts/place.sh",
        "extensions/workspace/scripts/belonging.sh",
        "extensions/workspace/scripts/prepare.sh",
    ];
    let rest = ["extensions/workspace/scripts/fill.sh", "transport/scripts/extract.sh"];
    let script = format!("sbx_prepare() {{\n{}}}\n{}", joined(&prepare), joined(&rest));
    let root = folder.path().join("root");
    let words = format!("'{}' made x own 1 machine {{}} 0 0 '\n ' no", root.display());
    for listens in [false, true] {
        let mut fill = command(folder.path(), &format!("shift; {script}"))
            .arg(words.len().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if !listens {
            drop(fill.stdout.take());
        }
        let mut stdin = fill.stdin.take().unwrap();
        stdin.write_all(words.as_bytes()).unwrap();
        // A tar stream without anything in it.
        let _ = stdin.write_all(&[0; 1024]);
        drop(stdin);
        let ran = fill.wait_with_output().unwrap();
        assert_eq!(root.join("sbx-x/workspace").exists(), listens, "{ran:?}");
        assert!(!root.join(".sbx-x.new").exists());
    }
}
