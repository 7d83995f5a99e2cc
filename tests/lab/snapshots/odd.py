"""Makes a folder with everything that a file system can hold, or says what is in one.

odd.py make FOLDER SELF_UID SELF_GID OTHERS...   OTHERS: the uids of root and two others, as this machine has them
odd.py tell FOLDER                               a JSON object a line, by path
"""
import base64
import hashlib
import json
import os
import socket
import stat
import struct
import sys


def make(top, uid, gid, root, other, third):
    def at(name):
        return os.path.join(top, os.fsencode(name) if isinstance(name, str) else name)

    def own(path, who=None):
        # Root of a rootless account's containers is the account.
        who = (uid, gid) if who in (None, uid) else (who, who)
        os.chown(path, *who, follow_symlinks=False)

    def file(name, content=b"x", mode=0o644, who=None):
        path = at(name)
        with open(path, "wb") as handle:
            handle.write(content)
        own(path, who)
        os.chmod(path, mode)
        return path

    def folder(name, mode=0o755, who=None):
        path = at(name)
        os.mkdir(path)
        own(path, who)
        os.chmod(path, mode)
        return path

    def link(name, target):
        os.symlink(target, at(name))
        own(at(name))

    file("plain", b"plain\n")
    file("empty", b"")
    file("secret", b"mine", 0o600)
    file("run", b"#!/bin/sh\n", 0o755)
    file("setuid", b"s", 0o4755)
    file("setgid", b"s", 0o2755)
    folder("hollow")
    folder("sticky", 0o1777)
    folder("shared", 0o2775)
    file("in-read-only", b"r")
    folder("read-only", 0o755)
    os.rename(at("in-read-only"), at("read-only/file"))
    os.chmod(at("read-only"), 0o555)
    file("n" * 200, b"long")
    deep = "deep"
    folder(deep)
    for _ in range(6):
        deep += "/" + "d" * 60
        folder(deep)
    file(deep + "/bottom", b"deep")
    file(b"not-utf8-\xff\xfe", b"bytes")
    file("ünïcödé", b"u")
    for name in ["new\nline", "-dash", " blank ", "back\\slash", "star*[a]?", "quote'\"", "tab\t", "equals=x", "#hash", "%s$HOME`x`"]:
        file(name, name.encode())
    with open(at("sparse"), "wb") as handle:
        handle.truncate(64 << 20)
        handle.seek(20 << 20)
        handle.write(b"island")
    own(at("sparse"))
    file("one", b"shared content", 0o640)
    os.link(at("one"), at("two"))
    os.link(at("one"), at("hollow/three"))
    link("relative", "plain")
    link("absolute", "/usr/bin/python3")
    link("up", "../../../etc/passwd")
    link("dangling", "no/such/file")
    link("loop-a", "loop-b")
    link("loop-b", "loop-a")
    link("itself", "itself")
    link("to-folder", "hollow")
    folder("venv")
    folder("venv/bin")
    link("venv/bin/python", "/usr/bin/python3")
    link("venv/lib64", "lib")
    folder("venv/lib")
    os.mkfifo(at("pipe"))
    own(at("pipe"))
    os.chmod(at("pipe"), 0o620)
    listening = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(top)
    listening.bind("socket")
    os.chdir(here)
    os.mknod(at("null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(at("hollow/disk"), 0o600 | stat.S_IFBLK, os.makedev(7, 200))
    file("roots", b"root's", 0o600, root)
    file("others", b"other's", 0o640, other)
    folder("theirs", 0o700, third)
    file("theirs/inside", b"closed", 0o600, third)
    folder("theirs/deeper", 0o700, other)
    file("theirs/deeper/x", b"closed", 0o400, other)
    os.setxattr(file("tagged"), "user.note", b"\x00\x01text")
    os.setxattr(folder("tagged-folder"), "user.note", b"f")
    os.setxattr(file("acl"), "system.posix_acl_access", struct.pack(
        "<IHHIHHIHHIHHIHHI", 2, 1, 6, 0xFFFFFFFF, 2, 7, uid, 4, 4, 0xFFFFFFFF, 16, 7, 0xFFFFFFFF, 32, 4, 0xFFFFFFFF))
    folder("many")
    for number in range(500):
        file("many/%03d" % number, b"%d" % number)
    for name, when in [("plain", 1), ("empty", 4_000_000_000), ("run", 1_600_000_000)]:
        os.utime(at(name), ns=(when * 10**9 + 123456789, when * 10**9 + 123456789))


def tell(top):
    rows = []

    def one(path, shown):
        seen = os.lstat(path)
        kind = stat.S_IFMT(seen.st_mode)
        row = {
            "path": shown,
            "kind": {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo",
                     stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}[kind],
            "mode": "%o" % stat.S_IMODE(seen.st_mode),
            "uid": seen.st_uid,
            "gid": seen.st_gid,
            "links": seen.st_nlink if kind != stat.S_IFDIR else 0,
            "time": seen.st_mtime_ns,
            "xattrs": {},
        }
        if kind == stat.S_IFREG:
            with open(path, "rb") as handle:
                row["hash"] = hashlib.sha256(handle.read()).hexdigest()
            row["size"] = seen.st_size
            row["sparse"] = seen.st_blocks * 512 < seen.st_size // 2
        if kind == stat.S_IFLNK:
            row["target"] = os.fsdecode(os.readlink(path)).encode("utf-8", "backslashreplace").decode()
            del row["mode"]
        else:
            for name in os.listxattr(path):
                row["xattrs"][name] = base64.b64encode(os.getxattr(path, name)).decode()
        rows.append(row)
        if kind == stat.S_IFDIR:
            for name in sorted(os.listdir(path)):
                one(os.path.join(path, name), shown + "/" + name.decode("utf-8", "backslashreplace"))

    one(top, ".")
    for row in rows:
        print(json.dumps(row))


if sys.argv[1] == "make":
    make(os.fsencode(sys.argv[2]), *map(int, sys.argv[3:]))
else:
    tell(os.fsencode(sys.argv[2]))
