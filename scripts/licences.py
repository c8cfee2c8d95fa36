#!/usr/bin/env python3
"""Writes docs/licences.md: what the crates of this repository depend on, under which licences, and the oldest versions that they ask for.

    scripts/licences.py            writes the page
    scripts/licences.py --check    fails if it is not what it would be, or if a licence is not one that we take

It knows what `cargo metadata` knows: what the features of the crates can bring along, on any platform, and not what tests need.
"""

import json
import pathlib
import re
import subprocess
import sys

CRATES = ["typed-dims", "typed-dims-kernels", "typed-dims-twins", "typed-dims-core", "typed-dims-macros", "typed-dims-onnx", "typed-dims-xla"]
# Licences that ask for no more than their text, for use in any program.
TAKEN = {"MIT", "MIT-0", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD", "CC0-1.0", "Unlicense", "BSL-1.0", "Unicode-3.0"}
ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"


def taken(expression):
    """Whether a licence expression can be met by licences that we take. `/` is how old manifests write `OR`."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def either():
        value = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            value = both() or value
        return value

    def both():
        value = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = one() and value
        return value

    def one():
        token = tokens.pop(0)
        if token == "(":
            value = either()
            tokens.pop(0)
            return value
        if tokens and tokens[0] == "WITH":
            token += f" {tokens.pop(0)} {tokens.pop(0)}"
        return token in TAKEN

    return either()


def dependencies(metadata):
    """The packages that builds of the crates can take, and through which of our crates' direct dependencies we ask for which versions."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    ours = [id for id, package in packages.items() if package["name"] in CRATES and package["source"] is None]
    seen, left = set(ours), list(ours)
    while left:
        for dependency in nodes[left.pop()]["deps"]:
            kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
            if kinds != {"dev"} and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                left.append(dependency["pkg"])
    direct = {
        dependency["name"]: (dependency["req"].lstrip("^"), dependency["optional"])
        for id in ours
        for dependency in packages[id]["dependencies"]
        if dependency["kind"] != "dev" and dependency["name"] not in CRATES
    }
    return [packages[id] for id in seen - set(ours)], direct


def main():
    command = ["cargo", "metadata", "--format-version", "1", "--all-features", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages, direct = dependencies(metadata)
    licences = sorted({(package["name"], package["license"] or "none is named") for package in packages})
    refused = [f"{name}: {licence}" for name, licence in licences if licence == "none is named" or not taken(licence)]
    rust = next(package["rust_version"] for package in metadata["packages"] if package["name"] == "typed-dims")
    lines = [
        "# Dependencies: versions and licences",
        "",
        "Written by `scripts/licences.py`, from what `cargo metadata` says.",
        "",
        "## The oldest versions that we ask for",
        "",
        f"Rust {rust} or newer, and of what the crates depend on themselves:",
        "",
        "| crate | from version | |",
        "|---|---|---|",
        *(f"| `{name}` | {version} | {'by a feature' if optional else ''} |" for name, (version, optional) in sorted(direct.items())),
        "",
        "## Licences",
        "",
        f"All {len(licences)} that a build with all features can take on any platform, without what only tests take:",
        "",
        "| crate | licence |",
        "|---|---|",
        *(f"| `{name}` | {licence} |" for name, licence in licences),
        "",
    ]
    page = "\n".join(lines)
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif PAGE.read_text() != page:
        sys.exit("docs/licences.md is out of date: run scripts/licences.py")
    if refused:
        sys.exit("not under a licence that we take:\n" + "\n".join(refused))


if __name__ == "__main__":
    main()
