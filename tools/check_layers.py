#!/usr/bin/env python3
"""Checks that includes in plimsoll/ only point downwards.

Reads every #include under plimsoll/ and compares it with the tables below: which room may use
which, who may see libtorch, JSON and the other libraries. Prints each wrong arrow as file:line and
exits 1.
Not checked: what a file uses through another header.

usage: check_layers.py [ROOT | --self-test]
"""

import pathlib
import re
import sys
import tempfile

PLANNER = {"base", "timeline", "shard", "network", "hardware", "plan"}

# What a room may include beside itself.
ALLOWED = {
    "base": set(),
    "timeline": {"base"},
    "shard": {"base"},
    "network": {"base", "timeline"},
    "hardware": {"base"},
    "plan": PLANNER - {"plan"},
    "formats": {"base", "timeline", "network", "hardware", "plan"},
    "checkpoint": {"base", "shard", "network", "formats"},
    "comm": {"base"},
    "engine": PLANNER | {"formats", "checkpoint", "comm"},
    "report": PLANNER | {"formats", "checkpoint"},
    "study": PLANNER | {"comm", "engine", "report"},
}
ALLOWED["cli"] = set(ALLOWED)

# The public headers directly under plimsoll/. Rooms below cli never include them.
PUBLIC = {
    "plan.hpp": PLANNER | {"formats", "report"},
    "zero.hpp": set(ALLOWED),
    "comm.hpp": {"base", "comm"},
    "meter.hpp": set(ALLOWED),
}

# Inside the engine: sharding is usable without what a complete training program adds.
FORBIDDEN_IN_FOLDER = {
    "plimsoll/engine/zero/": (
        "plimsoll/engine/checkpoint/", "plimsoll/engine/data/", "plimsoll/engine/train/"),
}

# Library headers by prefix, and the path prefixes that may include them.
LIBRARIES = (
    (("torch/", "ATen/", "c10/"), ("plimsoll/engine/torch.hpp", "plimsoll/engine/library/",
                                  "plimsoll/engine/dry/", "plimsoll/engine/nccl/")),
    (("nlohmann/",), ("plimsoll/formats/", "plimsoll/checkpoint/", "plimsoll/report/",
                      "plimsoll/cli/")),
    (("xxhash.h",), ("plimsoll/checkpoint/checksum.cpp", "plimsoll/checkpoint/checksum_avx2.cpp")),
    (("CLI/",), ("plimsoll/cli/",)),
    (("mpi.h",), ("plimsoll/comm/",)),
    (("doctest/",), ()),
)

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')


def room_of(path):
    """The room of `plimsoll/<room>/...`, or None for a header directly under plimsoll/."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else None


def wrong_room(path, included):
    """Says why `path` must not include the project's header `included`, else None."""
    target = room_of(included)
    source = room_of(path)
    if source is None:
        allowed = PUBLIC.get(path.removeprefix("plimsoll/"))
        if allowed is None:
            return f"unknown public header: expected one of {', '.join(sorted(PUBLIC))}"
    elif source not in ALLOWED:
        return f"unknown room {source}: expected one of {', '.join(sorted(ALLOWED))}"
    else:
        allowed = ALLOWED[source] | {source}
    if target is None:
        public = source in (None, "cli")
        return None if public else f"{source} must not use the public header {included}"
    if target not in allowed:
        others = ", ".join(sorted(allowed - {source})) or "none"
        return f"{source or path} must not use {target}: allowed are {others}"
    for folder, forbidden in FORBIDDEN_IN_FOLDER.items():
        if path.startswith(folder) and included.startswith(forbidden):
            return f"{folder} must not use {included}"
    return None


def wrong_library(path, included):
    """Says why `path` must not include the library header `included`, else None."""
    for prefixes, allowed in LIBRARIES:
        if included.startswith(prefixes) and not (allowed and path.startswith(allowed)):
            return f"<{included}> only belongs in {', '.join(allowed) or 'tests/'}"
    return None


def wrong_arrow(path, line):
    """Says what is wrong with one line of the file `path`, else None."""
    match = INCLUDE.match(line)
    if not match:
        return None
    included = match.group(1) or match.group(2)
    if included.startswith("plimsoll/"):
        return wrong_room(path, included)
    library = wrong_library(path, included)
    if library or match.group(1):
        return library
    return f'"{included}" hides its room: expected "plimsoll/<room>/..." or <...> for a library'


def wrong_arrows(root):
    """All findings below root as `file:line: reason`, and the number of files read."""
    findings = []
    files = sorted(file for kind in ("*.hpp", "*.cpp") for file in (root / "plimsoll").rglob(kind))
    for file in files:
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            reason = wrong_arrow(path, line)
            if reason:
                findings.append(f"{path}:{number}: {reason}")
    return findings, len(files)


SELF_TEST = {
    "plimsoll/base/bytes.hpp": ("#include <fmt/format.h>", True),
    "plimsoll/base/up.hpp": ('#include "plimsoll/plan/walk.hpp"', False),
    "plimsoll/base/relative.hpp": ('#include "../base/bytes.hpp"', False),
    "plimsoll/plan/walk.cpp": ('  #  include "plimsoll/network/spec.hpp"', True),
    "plimsoll/plan/json.cpp": ("#include <nlohmann/json.hpp>", False),
    "plimsoll/plan/text.cpp": ('// #include "plimsoll/cli/main.hpp"', True),
    "plimsoll/plan/public.cpp": ('#include "plimsoll/plan.hpp"', False),
    "plimsoll/formats/config.cpp": ("#include <nlohmann/json.hpp>", True),
    "plimsoll/engine/torch.hpp": ("#include <torch/torch.h>", True),
    "plimsoll/engine/run/run.cpp": ("#include <ATen/ATen.h>", False),
    "plimsoll/engine/library/stub.cpp": ("#include <c10/core/Allocator.h>", True),
    "plimsoll/engine/zero/unit.cpp": ('#include "plimsoll/engine/train/loop.hpp"', False),
    "plimsoll/report/html.cpp": ('#include "plimsoll/engine/torch.hpp"', False),
    "plimsoll/cli/plan.cpp": ('#include "plimsoll/plan.hpp"', True),
    "plimsoll/plan.hpp": ('#include "plimsoll/engine/zero/unit.hpp"', False),
    "plimsoll/zero.hpp": ('#include "plimsoll/engine/zero/unit.hpp"', True),
    "plimsoll/attic/old.cpp": ('#include "plimsoll/base/bytes.hpp"', False),
}


def self_test():
    """Writes files with right and wrong arrows and compares what is found with what was planted."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, (line, _) in SELF_TEST.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("#pragma once\n" + line + "\n", encoding="utf-8")
        findings, _ = wrong_arrows(root)
    found = {finding.split(": ")[0] for finding in findings}
    planted = {f"{path}:2" for path, (_, right) in SELF_TEST.items() if not right}
    for place in sorted(found ^ planted):
        verdict = "missed" if place in planted else "false alarm"
        print(f"[check_layers] self-test: {place}: {verdict}")
    if found == planted:
        print(f"check_layers self-test: {len(planted)} wrong arrows found, no false alarm")
    return 0 if found == planted else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[1]
    findings, files = wrong_arrows(root)
    for finding in findings:
        print(finding)
    print(f"check_layers: {files} files, {len(findings)} wrong arrows")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
