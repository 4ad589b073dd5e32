# SPDX-License-Identifier: MIT
"""Markdown pages: their code blocks, inline code, links, headings and the anchors that GitHub makes of these."""

import dataclasses
import pathlib
import re


@dataclasses.dataclass
class Block:
    page: str
    line: int  # of the opening fence
    language: str
    options: dict  # from=PATH, in=CONTEXT
    lines: list


@dataclasses.dataclass
class Page:
    name: str  # relative to the tree
    blocks: list = dataclasses.field(default_factory=list)
    indented: list = dataclasses.field(default_factory=list)  # lines that begin a block without a fence
    unclosed: int = 0  # line of a fence that never closes
    inline: list = dataclasses.field(default_factory=list)  # (line, code)
    links: list = dataclasses.field(default_factory=list)  # (line, target)
    anchors: set = dataclasses.field(default_factory=set)


FENCE = re.compile(r"^( *)```(.*)$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchor_of(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return "".join(c for c in text if c.isalnum() or c in " -_").replace(" ", "-")


def read(root, name):
    page, lines = Page(name), (root / name).read_text(encoding="utf-8").split("\n")
    number, previous, counts = 0, "", {}
    while number < len(lines):
        line = lines[number]
        fence = FENCE.match(line)
        if fence:
            indent, words = len(fence[1]), fence[2].split()
            end = next((i for i in range(number + 1, len(lines)) if lines[i].strip() == "```"), None)
            if end is None:
                page.unclosed = number + 1
                return page
            options = dict(word.split("=", 1) for word in words[1:] if "=" in word)
            options.update({word: "" for word in words[1:] if "=" not in word})
            body = [each[indent:] if each[:indent].isspace() else each for each in lines[number + 1:end]]
            page.blocks.append(Block(name, number + 1, words[0] if words else "", options, body))
            number, previous = end + 1, ""
            continue
        if line.startswith("    ") and not previous.strip() and not re.match(r"\s*([-*]|\d+\.) ", line):
            page.indented.append(number + 1)
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number].strip()):
                number += 1
            previous = ""
            continue
        heading = re.match(r"^#{1,6} (.*)$", line)
        if heading:
            anchor = anchor_of(heading[1])
            seen = counts[anchor] = counts.get(anchor, -1) + 1
            page.anchors.add(anchor if seen == 0 else f"{anchor}-{seen}")
        page.inline += [(number + 1, code) for code in re.findall(r"`([^`]+)`", line)]
        page.links += [(number + 1, target) for target in LINK.findall(re.sub(r"`[^`]*`", "", line))]
        previous = line
        number += 1
    return page


def link_problems(root, pages):
    """(page, line, problem) for each link to a file or an anchor that is not there."""
    for page in pages.values():
        for line, target in page.links:
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            try:
                other = (
                    page.name if not path else str((root / page.name).parent.joinpath(path).resolve().relative_to(root))
                )
            except ValueError:
                yield page.name, line, f"link to '{target}': expected a path inside of the tree"
                continue
            if not (root / other).exists():
                yield page.name, line, f"link to '{target}': expected {other}, found no such file"
            elif anchor and other.endswith(".md"):
                anchors = (pages[other] if other in pages else read(root, other)).anchors
                if anchor not in anchors:
                    yield (
                        page.name,
                        line,
                        f"link to '{target}': expected a heading with this anchor in {other}, found none",
                    )


# Rooms and folders as pages write them: `kernels/catalogue.hpp` stands for include/intaglio/kernels/catalogue.hpp.
BESIDE = ["", "include/intaglio/", "include/", "shaders/", "examples/", "docs/", "examples/tool/", "examples/serve/"]
PATH = re.compile(r"^(?:\./)?(?:[\w-]+/)+[\w.-]+\.(?:hpp|cpp|md|glsl|comp|py|svg|txt|gguf|profile)$")
FOLDER = re.compile(r"^(?:include|docs|tests|tools|examples|bench|shaders|cmake)(?:/[\w-]+)+/?$")


def path_problems(root, page):
    """(page, line, problem) for each path in inline code that names no file of the tree."""
    for line, code in page.inline:
        path = code.removeprefix("./")
        beside = [*BESIDE, str(pathlib.PurePosixPath(page.name).parent) + "/"]
        if PATH.match(code):
            if not any((root / (prefix + path)).exists() for prefix in beside):
                yield page.name, line, f"`{code}`: expected a file of the tree, found none"
        elif FOLDER.match(code) and not any((root / (prefix + path)).exists() for prefix in beside):
            yield page.name, line, f"`{code}`: expected a file or folder of the tree, found none"
