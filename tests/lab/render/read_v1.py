"""Reads files as docker-compose 1.29 does, many in one process.

A line in is {"yaml": ..., "project": ...}, a line out {"config": what `docker-compose config` prints, as JSON, "error": text}.
"""

import io
import json
import os
import sys

import yaml
from compose.cli.command import get_config_from_options
from compose.config.serialize import serialize_config


def run(case):
    with open("compose.yaml", "w", encoding="utf-8") as file:
        file.write(case["yaml"])
    os.environ["COMPOSE_PROJECT_NAME"] = case["project"]
    try:
        config = get_config_from_options(".", {"--file": ["compose.yaml"], "--project-name": case["project"]})
        return {"config": yaml.safe_load(serialize_config(config, None, False)), "error": ""}
    except Exception as broke:  # pylint: disable=broad-except
        return {"config": None, "error": f"{type(broke).__name__}: {broke}"}


out = os.fdopen(os.dup(1), "w", encoding="utf-8")
for line in sys.stdin:
    sys.stdout = sys.stderr = io.StringIO()
    told = run(json.loads(line))
    out.write(json.dumps(told, default=str) + "\n")
    out.flush()
