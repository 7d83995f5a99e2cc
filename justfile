# What CI runs, one piece at a time. Without `just`, the commands are right here. `just --list` shows them.

# everything that CI checks
ci:
    .ci/run

# make the source look like all the rest
fmt:
    cargo fmt

# format and lints; a warning is an error
lint:
    cargo fmt --check
    cargo clippy --all-targets --all-features --locked -- -D warnings
    cargo clippy --locked -- -D warnings

# every shell script, also those that are sent to hosts, as they are put together; needs shellcheck
shellcheck:
    tests/shellcheck

# the API's documentation; a broken link is an error
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked

# every test; arguments go to nextest, such as `just test --test it architecture::`
test *ARGS:
    tests/run {{ARGS}}

# compose files of a grammar, hostile ones among them, read back as each engine's tools read them; `just fuzz 7 5000`: seed, count
fuzz SEED="20261129" COUNT="3000":
    SANDBOXER_FUZZ_SEED={{SEED}} SANDBOXER_FUZZ_COUNT={{COUNT}} tests/run --success-output final --test it --test lab -E 'test(/^render::/)'

# a random walk of two consoles on the lab's hosts, with the rules of reaping checked after each step; `just chaos-reap 500 7`: steps, seed
chaos-reap N="50" SEED="20261129":
    SANDBOXER_FUZZ_SEED={{SEED}} SANDBOXER_FUZZ_COUNT={{N}} tests/run --success-output final --test lab -E 'test(/^stale::walk::/)'

# the capability documents of docs/registry: what they say is so
registry-check:
    tests/run --test it registry::

# two real SSH hosts with container engines on this machine (Debian 12, root)
lab-up:
    tests/lab/up

# end them
lab-down:
    tests/lab/down

# a canary's whole life on a configured host, by its name; `SANDBOXER=PATH just smoke-remote HOST`: with another binary
smoke-remote HOST:
    @test -n "${SANDBOXER:-}" || cargo build --quiet
    @tests/smoke-remote {{HOST}}

# the measured figures; with the lab up and `. .lab/env` also those that need a host. `just bench -- list frame`: some
bench *ARGS:
    cargo bench --bench figures {{ARGS}}
