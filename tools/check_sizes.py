#!/usr/bin/env python3
"""Prints how long functions and files are, and refuses the ones that are too long.

Functions are measured by universal-ctags from their first line to the closing brace; a lambda
counts with the function around it, a doctest case counts as a function. Lists functions over 60
lines and files over 400; exits 1 for a function over 100 lines, and in plimsoll/ for a source over
400 or a header over 250. Not measured: complexity, nesting.

usage: check_sizes.py [ROOT | --self-test]
"""

import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile

FOLDERS = ("plimsoll", "tests", "bench", "examples")
LONG_FUNCTION, MAX_FUNCTION = 60, 100
LONG_FILE, MAX_SOURCE, MAX_HEADER = 400, 400, 250

# Without these ctags sees no function behind doctest's macros.
DOCTEST = ("TEST_CASE(x)", "TEST_CASE_FIXTURE(c,x)", "TEST_CASE_TEMPLATE(x,...)")

Function = collections.namedtuple("Function", "path line name length")
File = collections.namedtuple("File", "path length")


def files_below(root):
    """The C++ files of the measured folders with their lengths."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp") and path.is_file():
                lines = len(path.read_text(encoding="utf-8").splitlines())
                found.append(File(path.relative_to(root).as_posix(), lines))
    return found


def without_inner_lambdas(functions):
    """Drops lambdas that lie inside another function of the same file."""
    kept = []
    for one in functions:
        inner = one.name.startswith("__anon") and any(
            other is not one and other.path == one.path and other.line <= one.line
            and one.line + one.length <= other.line + other.length for other in functions)
        if not inner:
            kept.append(one)
    return kept


def functions_in(root, files):
    """Every function that ctags finds in the files."""
    if not files:
        return []
    macros = []
    for macro in DOCTEST:
        macros += ["-D", f"{macro}=void {macro.partition('(')[0]}()"]
    command = ["ctags", "--quiet=yes", "--options=NONE", "-x", "--language-force=C++",
               "--kinds-C++=f", *macros, "--_xformat=%F\t%n\t%{end}\t%N", "-L", "-"]
    names = "".join(file.path + "\n" for file in files)
    output = subprocess.run(command, cwd=root, input=names, stdout=subprocess.PIPE, text=True,
                            check=True)
    by_file = collections.defaultdict(list)
    for row in output.stdout.splitlines():
        path, line, end, name = row.split("\t")
        if end.isdigit():
            by_file[path].append(Function(path, int(line), name, int(end) - int(line) + 1))
    return [one for path in sorted(by_file) for one in without_inner_lambdas(by_file[path])]


def percentile(lengths, share):
    """The smallest length that at least this share of the lengths does not exceed."""
    ordered = sorted(lengths)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)] if ordered else 0


def print_distribution(title, functions, files):
    lengths = [function.length for function in functions]
    long_share = 100 * sum(length > LONG_FUNCTION for length in lengths) / max(1, len(lengths))
    headers = [file.length for file in files if file.path.endswith(".hpp")]
    sources = [file.length for file in files if file.path.endswith(".cpp")]
    print(f"{title:<22}{len(lengths):>9}{percentile(lengths, 50):>8}{percentile(lengths, 90):>6}"
          f"{percentile(lengths, 99):>6}{long_share:>7.1f}%"
          f"{len(headers):>9}{percentile(headers, 50):>8}"
          f"{len(sources):>9}{percentile(sources, 50):>8}"
          f"{sum(file.length for file in files):>9}")


def group_of(path):
    """Rooms are reported one by one, other folders as a whole."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "plimsoll" and len(parts) > 2 else parts[0]


def print_table(functions, files):
    print(f"{'':<22}{'functions':>9}{'median':>8}{'p90':>6}{'p99':>6}{f'>{LONG_FUNCTION}':>8}"
          f"{'headers':>9}{'median':>8}{'sources':>9}{'median':>8}{'lines':>9}")
    for group in sorted({group_of(file.path) for file in files}):
        print_distribution(group, [f for f in functions if group_of(f.path) == group],
                           [f for f in files if group_of(f.path) == group])
    print_distribution("all", functions, files)


def too_long(file):
    """The limit that a file breaks, or None."""
    limit = MAX_HEADER if file.path.endswith(".hpp") else MAX_SOURCE
    return limit if file.path.startswith("plimsoll/") and file.length > limit else None


def report(root):
    """Prints everything; gives the number of findings that are refused."""
    files = files_below(root)
    functions = functions_in(root, files)
    print_table(functions, files)
    refused = 0
    for one in sorted(functions, key=lambda function: -function.length):
        if one.length > LONG_FUNCTION:
            bad = one.length > MAX_FUNCTION
            refused += bad
            print(f"{one.path}:{one.line}: {one.name}: {one.length} lines"
                  + (f", expected at most {MAX_FUNCTION}" if bad else ""))
    for one in sorted(files, key=lambda file: -file.length):
        limit = too_long(one)
        refused += limit is not None
        if limit or one.length > LONG_FILE:
            expected = f", expected at most {limit}" if limit else ""
            print(f"{one.path}: {one.length} lines{expected}")
    print(f"check_sizes: {len(functions)} functions, {len(files)} files, {refused} too long")
    return refused


def function_text(head, length):
    return head + " {\n" + "  work();\n" * (length - 2) + "}\n"


def self_test():
    """Plants functions and files on both sides of each limit and compares what is counted."""
    planted = {
        "plimsoll/base/good.cpp": function_text("void limit()", MAX_FUNCTION),
        "plimsoll/base/long_function.cpp": function_text("int over()", MAX_FUNCTION + 1),
        "plimsoll/base/long_source.cpp": "// x\n" * (MAX_SOURCE + 1),
        "plimsoll/base/long_header.hpp": "// x\n" * (MAX_HEADER + 1),
        "tests/unit/long_case.cpp": function_text('TEST_CASE("a long case")', MAX_FUNCTION + 1),
        "tests/unit/long_file.cpp": "// x\n" * (MAX_SOURCE + 1),
        "tests/unit/lambda.cpp": "void outer() {\n  auto f = [] {\n    work();\n  };\n}\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in planted.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        files = files_below(root)
        functions = functions_in(root, files)
    found = {(f.path, f.length > MAX_FUNCTION) for f in functions}
    expected = {("plimsoll/base/good.cpp", False), ("plimsoll/base/long_function.cpp", True),
                ("tests/unit/long_case.cpp", True), ("tests/unit/lambda.cpp", False)}
    long_files = {file.path for file in files if too_long(file)}
    right = (found == expected and len(functions) == len(expected)
             and long_files == {"plimsoll/base/long_source.cpp", "plimsoll/base/long_header.hpp"}
             and percentile([1, 2, 3, 4], 50) == 2 and percentile(range(1, 101), 90) == 90)
    print("check_sizes self-test: " + ("the long ones and only those are found" if right
                                       else f"FAILED: {sorted(functions)}, {sorted(long_files)}"))
    return 0 if right else 1


def main(arguments):
    if shutil.which("ctags") is None:
        print("[check_sizes] ctags not found, expected universal-ctags. "
              "Hint: ./run check installs it", file=sys.stderr)
        return 3
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[1]
    return 1 if report(root) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
