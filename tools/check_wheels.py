#!/usr/bin/env python3
"""Tells whether the Python environment that runs this holds what a requirements file pins.

The list of a wheel's files is written last, so an interrupted installation has no list or misses
files on it. Exit 0: whole; 1: not, with the reason on stderr.
"""

import importlib.metadata
import re
import sys


def problem_with(requirement):
    """Says what is wrong with one installed requirement `name` or `name==version`, else None."""
    name, _, version = requirement.partition("==")
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is not installed"
    # A local label such as +cpu names the build, not another version.
    installed = distribution.version.partition("+")[0]
    if version and installed != version:
        return f"{name} is {distribution.version}, expected {version}"
    if not distribution.files:
        return f"{name} has no list of its files"
    missing = [file for file in distribution.files if not file.locate().exists()]
    # Compiled caches may be cleaned away at any time.
    missing = [file for file in missing if file.suffix != ".pyc"]
    return f"{name} misses {len(missing)} files, first {missing[0]}" if missing else None


def main(path):
    with open(path, encoding="utf-8") as file:
        lines = [re.sub(r"\s*#.*", "", line).strip() for line in file]
    problems = [problem for problem in map(problem_with, filter(None, lines)) if problem]
    for problem in problems:
        print(f"[check_wheels] {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
