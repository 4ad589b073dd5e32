#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Usage: interface.py describe HEADER     prints what programs and libraries agree on: functions, layouts, values
       interface.py compare OLD NEW        fails if the change from OLD to NEW needs another version than NEW has
       interface.py check HEADER FOLDER    compares planted changes of the header, each with the versions that it needs

A C compiler measures sizes, offsets and values of the header's declarations on this machine (CC, gcc unless set). A
change that breaks compiled programs needs a higher major version. Whatever is only added needs a higher minor version:
a function, a value, a callback, members at the end of a struct that begins with its size.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


def squeezed(text):
    text = re.sub(r"\s*([(),*])\s*", r"\1", " ".join(text.split()))
    return re.sub(r"\*(?=\w)", "* ", text).replace(",", ", ")


def declarations(header):
    """(kind, name, body or text) of every declaration; ends where the header has something else."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r'#ifdef __cplusplus.*?#endif', " ", text, flags=re.S)
    text = re.sub(r"(?m)^\s*#.*$", "", text)
    kinds = {
        "enum": r"enum (\w+)\s*\{([^}]*)\};",
        "opaque": r"typedef struct (\w+) (\1);",
        "struct": r"typedef struct (\w+)\s*\{([^}]*)\} \1;",
        "callback": r"typedef ([^;(]*\(\*(?=(\w+)\)).*?);",
        "function": r"INTAGLIO_C_API ([^;]*?\b(?=(\w+)\().*?);",
    }
    found = []
    while text.strip():
        for kind, pattern in kinds.items():
            match = re.match(r"\s*" + pattern, text, flags=re.S)
            if match:
                pair = match.groups() if kind in ("enum", "opaque", "struct") else match.groups()[::-1]
                found.append((kind, *pair))
                text = text[match.end():]
                break
        else:
            sys.exit(f"{header}: expected an enum, a struct, a callback or a function, found '{text.strip()[:60]}'")
    return found


def members(body):
    for each in filter(None, map(str.strip, body.split(";"))):
        declared, name = re.fullmatch(r"(.*?)(\w+)", squeezed(each)).groups()
        yield declared.strip(), name


def describe(header):
    lines = []  # texts of C expressions in {} are measured
    for part in ("MAJOR", "MINOR"):
        lines.append(f"version {part.lower()} {{INTAGLIO_C_VERSION_{part}}}")
    for kind, name, body in declarations(header):
        if kind == "enum":
            values = [each.split("=")[0].strip() for each in body.split(",") if each.strip()]
            lines += [f"value {name} {value} {{{value}}}" for value in values]
        elif kind == "struct":
            lines.append(f"struct {name} {{sizeof({name})}} bytes")
            for declared, member in members(body):
                measured = f"{{offsetof({name}, {member})}} {{sizeof((({name}*)0)->{member})}}"
                lines.append(f"member {name} {member} {measured} {declared}")
        elif kind == "function":
            returned, taken = re.fullmatch(rf"(.*?)\s*{name}\((.*)\)", squeezed(body)).groups()
            lines.append(f"function {name} {returned}")
            types = [] if taken == "void" else [each for each, _ in members(taken.replace(", ", ";"))]
            lines += [f"argument {name} {number} {each}" for number, each in enumerate(types)]
        else:
            lines.append(f"{kind} {name} {squeezed(body)}")
    expressions = [each for line in lines for each in re.findall(r"\{(.*?)\}", line)]
    numbers = iter(measure(header, expressions))
    return [re.sub(r"\{.*?\}", lambda _: next(numbers), line) for line in lines]


def measure(header, expressions):
    prints = "".join(f'  printf("%lu\\n", (unsigned long)({each}));\n' for each in expressions)
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "measure.c", pathlib.Path(folder) / "measure"
        source.write_text(f'#include <stdio.h>\n#include "{header.resolve()}"\nint main(void) {{\n{prints}'
                          "  return 0;\n}\n", encoding="utf-8")
        subprocess.run([os.environ.get("CC", "gcc"), "-std=c89", "-Wno-long-long", str(source), "-o", str(program)],
                       check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()


def read(lines):
    """Version, and the other lines by kind and name."""
    version, rest = [0, 0], {}
    for line in lines:
        words = line.split(" ")
        if words[0] == "version":
            version[words[1] == "minor"] = int(words[2])
        else:
            names = 3 if words[0] in ("value", "member", "argument") else 2
            rest[tuple(words[:names])] = " ".join(words[names:])
    return tuple(version), rest


def changes(old, new):
    """(what breaks programs, what is added), each as lines."""
    breaks = [f"{' '.join(key)} is gone" for key in old if key not in new]
    added = []
    for key, text in new.items():
        if key not in old:
            # A new member is behind the old ones, or these have other offsets than before.
            larger = key[0] == "argument" and ("function", key[1]) in old
            larger |= key[0] == "member" and ("struct", key[1]) in old and not grows(key[1], old, new)
            (breaks if larger else added).append(f"{' '.join(key)} is new")
        elif old[key] != text:
            fine = key[0] == "struct" and grows(key[1], old, new)
            (added if fine else breaks).append(f"{' '.join(key)}: {old[key]} is {text} now")
    return breaks, added


def grows(struct, old, new):
    """Whether a struct that begins with its size is larger now: the library reads as many bytes as `size` says."""
    before, now = (int(each[("struct", struct)].split()[0]) for each in (old, new))
    return old.get(("member", struct, "size"), "").startswith("0 ") and now > before


def problems(old_lines, new_lines):
    (old_version, old), (new_version, new) = read(old_lines), read(new_lines)
    breaks, added = changes(old, new)
    if new_version < old_version:
        return [f"version {new_version} is older than {old_version}"]
    if breaks and new_version[0] == old_version[0]:
        return [f"{each}: expected a major version over {old_version[0]}, found {new_version[0]}" for each in breaks]
    if added and new_version == old_version:
        return [f"{each}: expected a minor version over {old_version[1]}, found {new_version[1]}" for each in added]
    return []


PLANTED = [  # what is replaced in the header, by what, the part of the version that has to be higher
    ("INTAGLIO_END = 1,", "INTAGLIO_END = 1, INTAGLIO_BUSY = 9,", "minor"),
    ("INTAGLIO_NO_ROOM = 7,", "INTAGLIO_NO_ROOM = 8,", "major"),
    ("  unsigned context; ", "  unsigned context; unsigned long threads; ", "minor"),  # beyond the last one's padding
    ("  int allow_cpu; ", "  int threads; int allow_cpu; ", "major"),
    ("  const char* content;", "  const char* content; const char* name;", "major"),  # callers have arrays of these
    ("  float top_p; ", "  double top_p; ", "major"),
    ("  unsigned max_tokens; ", "  unsigned max_tokens; int least_tokens; ", "major"),  # in padding: no larger struct
    ("intaglio_reset(intaglio_model* model);",
     "intaglio_reset(intaglio_model* model);\nINTAGLIO_C_API int intaglio_forget(intaglio_model* model);", "minor"),
    ("INTAGLIO_C_API int intaglio_reset(intaglio_model* model);", "", "major"),
    ("intaglio_reset(intaglio_model* model);", "intaglio_reset(intaglio_model* model, int all);", "major"),
]


def check(header, folder):
    text, now, failed = header.read_text(encoding="utf-8"), describe(header), []
    major, minor = read(now)[0]
    versions = {"none": (major, minor), "minor": (major, minor + 1), "major": (major + 1, 0)}
    for number, (old, new, needed) in enumerate(PLANTED):
        if text.count(old) != 1:
            failed.append(f"planted change {number}: expected '{old}' once in {header.name}, found {text.count(old)}")
            continue
        planted = folder / f"planted_{number}.h"
        for part, (a, b) in versions.items():
            changed = text.replace(old, new)
            changed = re.sub(r"(VERSION_MAJOR) \d+", rf"\1 {a}", re.sub(r"(VERSION_MINOR) \d+", rf"\1 {b}", changed))
            planted.write_text(changed, encoding="utf-8")
            accepted = not problems(now, describe(planted))
            if accepted != (list(versions).index(part) >= list(versions).index(needed)):
                failed.append(f"'{new}' with version {a}.{b}: expected "
                              f"{'a refusal' if accepted else 'none'}, found {'none' if accepted else 'one'}")
    return failed


def main():
    command, paths = sys.argv[1], [pathlib.Path(each) for each in sys.argv[2:]]
    if command == "describe":
        print("\n".join(describe(paths[0])))
        return
    if command == "compare":
        failed = problems(*(path.read_text(encoding="utf-8").splitlines() for path in paths))
    else:
        failed = check(*paths)
    for each in failed:
        print(f"interface: {each}", file=sys.stderr)
    sys.exit(1 if failed else 0)


main()
