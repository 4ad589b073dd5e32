# SPDX-License-Identifier: MIT
"""The reference of the public names (docs/reference/Doxyfile): which headers it must have, which names it must have,
and what a docstring in it must begin with. Doxygen itself refuses a name without a docstring."""

import re
import subprocess
import xml.etree.ElementTree

DOXYFILE = "docs/reference/Doxyfile"
TAGS = "build/reference/intaglio.tag"
LIBRARY = "include/intaglio"
# Definitions that an umbrella header brings with INTAGLIO_IMPLEMENTATION, and what every header includes.
NOT_PUBLIC = {
    "intaglio/core/compiler.hpp",
    "intaglio/runtime/batch_session.hpp",
    "intaglio/runtime/engraved_batch_session.hpp",
    "intaglio/runtime/engraved_session.hpp",
    "intaglio/runtime/session.hpp",
    "intaglio/io/checkpoint_folder.hpp",
}
PAGE = "docs/embedding.md"  # the page whose names callers use
NAME = re.compile(r"\b(?:intaglio::)?((?:gpu|plan|runtime|graph|models|io)(?:::\w+)+)")
FIRST = re.compile(r"[A-Z`]|\w+_\w+\b|\w+(?:::|\()|[\w.-]+/[\w.-]+")
LAST = (".", ":", "`")


def inputs(root):
    """Paths of the headers and folders that Doxygen reads."""
    text = (root / DOXYFILE).read_text(encoding="utf-8").replace("\\\n", " ")
    return re.search(r"^INPUT += (.*)$", text, re.MULTILINE)[1].split()


def umbrella_problems(root):
    """Headers that users include by an umbrella header and that the reference lacks."""
    listed = inputs(root)
    for umbrella in sorted((root / LIBRARY).glob("*.hpp")):
        text = umbrella.read_text(encoding="utf-8")
        for number, line in enumerate(text.split("\n"), 1):
            include = re.match(r'\s*#\s*include\s*"(intaglio/[^"]+)"', line)
            if not include or include[1] in NOT_PUBLIC:
                continue
            path = "include/" + include[1]
            if not any(path == each or path.startswith(each + "/") for each in listed):
                yield umbrella.relative_to(root).as_posix(), number, f"{path}: expected it in INPUT of {DOXYFILE}"


def documented(root):
    """Qualified names of everything that the reference has, without the namespace of the library."""
    names = set()
    for compound in xml.etree.ElementTree.parse(root / TAGS).getroot().iter("compound"):
        outer = compound.findtext("name", "")
        names.add(outer)
        if compound.get("kind") == "file":
            continue
        for member in compound.iter("member"):
            names.add(f"{outer}::{member.findtext('name', '')}")
    return {name.removeprefix("intaglio::") for name in names}


def name_problems(root, page):
    """Names in inline code of the page for callers that the reference lacks."""
    if not (root / TAGS).is_file():
        yield page.name, 1, f"{TAGS}: expected the list of names that doxygen {DOXYFILE} writes, found none"
        return
    known = documented(root)
    for line, code in page.inline:
        for name in NAME.findall(code):
            if name not in known:
                yield page.name, line, f"{name}: expected a name of the reference ({DOXYFILE}), found none"


def docstrings(text):
    """(line number, text) of the docstrings in front of declarations, without their commands."""
    block, began = [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        match = re.match(r"\s*///(?!<) ?(.*)", line)
        if match:
            began = began or number
            block.append(match[1])
        elif block:
            yield began, " ".join(block).partition("@")[0].strip()
            block, began = [], 0


def sentence_problems(name, text):
    """Docstrings that do not begin with a sentence. Those of members may have commands only (@param, @error)."""
    lines = text.split("\n")
    for number, words in docstrings(text):
        alone = lines[number - 1].startswith("/// @") and lines[number - 1] not in ("/// @{", "/// @}")
        if (words and not (FIRST.match(words) and words.endswith(LAST))) or (alone and not words):
            yield name, number, f"'{words[:40]}': expected a sentence, which begins with a capital letter and ends"


def public_headers(root):
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *inputs(root)],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    # The docstrings of models begin with the names under which they are published; docs/reference/filter adds the rest.
    return [name for name in tracked.stdout.split("\0") if name.endswith(".hpp") and "/models/" not in name]


def problems(root, page):
    yield from umbrella_problems(root)
    yield from name_problems(root, page)
    headers = public_headers(root)
    if not headers:
        yield DOXYFILE, 1, "expected headers in INPUT, found none"
    for name in headers:
        yield from sentence_problems(name, (root / name).read_text(encoding="utf-8"))


def planted_problems():
    """sentence_problems finds a phrase, an unfinished sentence and nothing else."""
    planted = "\n".join(
        ["/// A number of rows.", "int a;", "/// number of rows", "int b;", "/// Rows that", "/// count", "int c;"]
        + ["/// @error none", "int d;", "  /// @error none", "  int e;"]
    )
    found = [line for _, line, _ in sentence_problems("", planted)]
    if found != [3, 5, 8]:
        yield "tests/docs/reference.py", 1, f"expected complaints of the planted lines 3, 5 and 8, found {found}"
