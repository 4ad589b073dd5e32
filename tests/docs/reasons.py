# SPDX-License-Identifier: MIT
"""The lists of tests/docs: commands that are not run, each with what does their work, and those run in other words."""

import re
import sys

COLUMN = "    # "


def columns(root, name, count):
    """(line number, columns) of a list of tests/docs: its first column is a pattern, its last one a reason."""
    for number, line in enumerate((root / "tests/docs" / name).read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            found = [column.strip() for column in line.split(COLUMN)]
            if len(found) != count or not all(found):
                sys.exit(f"tests/docs/{name}:{number}: expected {count} columns between '{COLUMN}', found '{line}'")
            yield number, found


class Patterns:
    """Lines that begin with a pattern of commands; one that fits no command is an error."""

    def __init__(self, root, name, count):
        self.name = f"tests/docs/{name}"
        self.lines = [
            [number, re.compile(found[0]), found[1:], False] for number, found in columns(root, name, count)
        ]

    def line_of(self, command):
        for entry in self.lines:
            if entry[1].search(command):
                entry[3] = True
                return entry
        return None

    def unused_problems(self):
        for number, pattern, _, used in self.lines:
            if not used:
                yield self.name, number, f"'{pattern.pattern}': expected a command that it fits, found none"


class Instead(Patterns):
    """Commands that are run in other words: their beginning is replaced, and they do not run in the background."""

    def __init__(self, root):
        super().__init__(root, "instead", 3)

    def words_of(self, command):
        entry = self.line_of(command)
        if entry is None:
            return command
        rest = entry[1].sub("", command, count=1)
        return f"{entry[2][0]} {rest.rstrip().removesuffix('&')}"


class NotRun(Patterns):
    """Commands that are checked but not run. A step, a script or a test does their work: it has their words."""

    def __init__(self, root, name="not_run"):
        super().__init__(root, name, 3)
        self.root = root
        self.texts = [path.read_text(encoding="utf-8") for path in (root / "tools/development").glob("*.bash")]
        self.texts.append((root / "dev").read_text(encoding="utf-8"))

    def covers(self, command):
        return self.line_of(command) is not None

    def function(self, name):
        """The text of a function of ./dev, in one line or in several; None where there is none."""
        for text in self.texts:
            begin = rf"^{re.escape(name)}\(\) \{{"
            found = re.search(begin + r".*\}$", text, re.MULTILINE)
            found = found or re.search(begin + r".*?^\}$", text, re.MULTILINE | re.DOTALL)
            if found:
                return found[0]
        return None

    def evidence(self, name):
        """The text of a step, of the functions that it calls and of the scripts that it names; None without a step."""
        text = self.function(f"step_{name}")
        if text is None:
            return None
        called = [self.function(word) for word in sorted(set(re.findall(r"\b[a-z_]+\b", text)))]
        scripts = [
            self.root / path
            for path in sorted(set(re.findall(r"\b(?:tests|tools|bindings)/[\w./]+", text)))
            if (self.root / path).is_file()
        ]
        return "\n".join([text, *filter(None, called), *(path.read_text(encoding="utf-8") for path in scripts)])

    def reason_problems(self):
        for number, _, (where, _), _ in self.lines:
            if where == "network":
                continue
            path, _, words = where.partition(" ")
            if path == "step":
                path, _, words = words.partition(" ")
                text = self.evidence(path)
            else:
                path = self.root / path
                text = path.read_text(encoding="utf-8") if path.is_file() else None
            if text is None:
                yield self.name, number, f"'{where}': expected a step of ./dev test or a file of the tree, found none"
            elif not words or words not in text:
                yield self.name, number, f"'{where}': expected these words there, found none"
