"""Runs podman-compose over many files in one process, and says with which words it would have called podman.

argv.py FOLDER        podman_compose.py is in FOLDER; the working directory is the sandbox's

A line in is {"yaml": ..., "project": ..., "engine": version, "command": [...]}, a line out {"calls": [[word]], "made": [path], "error": text}.
What is replaced is the exec alone, with what the kernel and Python would say to such words, and answers of a podman that
has nothing yet. tests/lab/render proves on some files that the program itself, with a podman that writes its words down,
calls with the same.
"""

import asyncio
import io
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, sys.argv[1])
import podman_compose as tool  # noqa: E402

compose = tool.podman_compose
commands = compose.commands
exists = os.path.exists
state = {}


def answer(words):
    """Exit status and output of a podman that has nothing, or ends where the words could not be passed on."""
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"expected str, bytes or os.PathLike object, not {type(word).__name__}")
        if "\0" in word:
            raise ValueError("embedded null byte")
        os.fsencode(word)
    words = list(words[1:])
    state["calls"].append(words)
    if words[:1] == ["--version"]:
        return 0, f"podman version {state['engine']}\n"
    if words[:1] == ["ps"]:
        return 0, "[]"
    if words[:2] in (["network", "exists"], ["volume", "inspect"], ["pod", "exists"]):
        return (0, "[]") if (words[0], words[-1]) in state["has"] else (1, "")
    if words[1:2] == ["create"]:
        state["has"].add((words[0], words[-1]))
    if words[:1] == ["inspect"]:
        return 1, ""
    return 0, ""


class Process:
    """An ended process."""

    def __init__(self, words):
        self.returncode, self.output = answer(words)
        self.stdout = self.stderr = None

    def wait(self):
        return self.returncode


class Awaited(Process):
    async def wait(self):
        return self.returncode

    async def communicate(self):
        return self.output.encode(), b""


def check_output(words, *_args, **_options):
    status, output = answer(words)
    if status:
        raise subprocess.CalledProcessError(status, words)
    return output.encode()


async def create_subprocess_exec(*words, **_options):
    return Awaited(words)


subprocess.check_output = check_output
subprocess.Popen = lambda words, *_args, **_options: Process(words)
asyncio.create_subprocess_exec = create_subprocess_exec
time.sleep = lambda _seconds: None
os.makedirs = lambda path, *_args, **_options: state["made"].append(str(path))


def run(case):
    state.update(calls=[], made=[], has=set(), engine=case["engine"])
    with open("compose.yaml", "w", encoding="utf-8") as file:
        file.write(case["yaml"])
    compose.__init__()
    compose.commands = commands
    sys.argv = ["podman-compose", "-p", case["project"], "-f", "compose.yaml", *case["command"]]
    error = ""
    try:
        ran = compose.run()
        if asyncio.iscoroutine(ran):
            asyncio.run(ran)
    except SystemExit as ended:
        error = f"exit {ended.code}" if ended.code else ""
    except Exception as broke:  # pylint: disable=broad-except
        error = f"{type(broke).__name__}: {broke}"
    return {"calls": state["calls"], "made": state["made"], "error": error}


out = os.fdopen(os.dup(1), "w", encoding="utf-8")
home = os.getcwd()
for line in sys.stdin:
    os.chdir(home)
    sys.stdout = sys.stderr = io.StringIO()
    told = run(json.loads(line))
    out.write(json.dumps(told) + "\n")
    out.flush()
