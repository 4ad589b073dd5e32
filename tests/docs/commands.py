# SPDX-License-Identifier: MIT
"""Command lines in pages against the programs: program, subcommand, options, their values and the number of
operands."""

import pathlib
import re
import shlex
import subprocess


def simple_commands(line):
    """The commands of a shell line, each as its words; handles redirections and quotes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    lexer.wordchars += "#"
    out, words, skip = [], [], False
    for word in lexer:
        if word and set(word) <= set("<>&|;()"):
            skip = set(word) <= set("<>&") and word not in ("&", "&&")
            if not skip and words:
                out.append(words)
                words = []
        elif skip:
            skip = False
        else:
            words.append(word)
    return out + [words] if words else out


def is_placeholder(word):
    return re.fullmatch(r"[A-Z][A-Z0-9_.]*|…|\.\.\.", word) is not None


class Help:
    """What a program of CLI11's says with --help: options, operands, commands."""

    def __init__(self, text):
        self.options, self.operands, self.commands = {}, [], set()
        part = ""
        for line in text.splitlines():
            if re.match(r"^\S.*:$", line):
                part = line.rstrip(":")
                continue
            option = re.match(r"^  (-[\w-]*(?:,--?[\w-]+)*)((?: \S+)*)", line)
            if option and part not in ("Examples", "Subcommands", "Positionals"):
                about = re.sub(r"\(Env:[^)]*\)", "", re.split(r" (?:Excludes|Needs): ", option[2])[0]).strip()
                for name in option[1].split(","):
                    self.options[name] = about
            elif part == "Positionals":
                operand = re.match(r"^  ([A-Z]\S*)(.*)", line)
                if operand:
                    self.operands.append(operand[1] + operand[2])
            elif part == "Subcommands" and re.match(r"^  \w", line):
                self.commands.add(line.split()[0])


class Checker:
    def __init__(self, root, tool, server):
        self.root, self.programs, self.helps = root, {"intaglio": tool, "intaglio-serve": server}, {}
        usage = subprocess.run(["./dev", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
        self.dev = {
            m[1]: set(re.findall(r"--\w+", m[2]))
            for m in re.finditer(r"^  (\w+)(.*(?:\n {6,}.*)*)", usage, re.MULTILINE)
        } | {"help": set()}
        self.steps = set(
            subprocess.run(
                ["./dev", "test", "--list"], cwd=root, capture_output=True, text=True, check=True
            ).stdout.split()
        )
        lists = [
            root / "CMakeLists.txt",
            root / "CMakePresets.json",
            *root.glob("cmake/*"),
            *root.glob("bindings/**/CMakeLists.txt"),
            *root.glob("examples/**/CMakeLists.txt"),
            *root.glob("bench/CMakeLists.txt"),
        ]
        self.cmake = "".join(path.read_text(encoding="utf-8") for path in lists if path.is_file())

    def help(self, program, chain=()):
        if (program, chain) not in self.helps:
            result = subprocess.run(
                [self.programs[program], *chain, "--help"], capture_output=True, text=True, timeout=20
            )
            if result.returncode:
                raise RuntimeError(
                    f"{program} {' '.join(chain)} --help: expected status 0, found {result.returncode}: {result.stderr}"
                )
            self.helps[program, chain] = Help(result.stdout)
        return self.helps[program, chain]

    def problems(self, words):
        """Sentences about a command given as its words."""
        words = list(words)
        while words and re.match(r"^[A-Z_][A-Z0-9_]*=", words[0]):
            words.pop(0)  # variables are searched for in all inline code and blocks
        if not words:
            return
        if words[0] == "mpirun":  # starts another program: its own options are not ours to check
            words = words[next((at for at, word in enumerate(words) if word in self.programs), 0):]
        program, arguments = words[0], words[1:]
        name = pathlib.PurePosixPath(program).name
        if program == "./dev":
            yield from self.dev_problems(arguments)
        elif program in ("intaglio", "intaglio-serve", "build/bin/intaglio", "build/bin/intaglio-serve"):
            yield from self.program_problems(name, arguments)
        elif program.startswith(("bindings/", "build/bench/", "bench/", "tests/", "tools/")):
            yield from self.own_problems(program, arguments)
        elif program == "cmake":
            yield from self.cmake_problems(arguments)
        elif program not in self.outside:
            yield f"'{program}': expected a program of the tree or one of tests/docs/outside, found another"

    @property
    def outside(self):
        return {
            line.split()[0]
            for line in (self.root / "tests/docs/outside").read_text(encoding="utf-8").splitlines()
            if line and not line.startswith("#")
        }

    def dev_problems(self, arguments):
        if not arguments:
            return
        command, rest = arguments[0], arguments[1:]
        if command not in self.dev:
            yield f"./dev {command}: expected one of {', '.join(sorted(self.dev))}"
        elif command in ("run", "serve"):
            if rest:
                yield from self.program_problems("intaglio" if command == "run" else "intaglio-serve", rest)
        else:
            for before, word in zip(["", *rest], rest):
                if word.startswith("-"):
                    known = word in self.dev[command]
                elif before == "--only":
                    known = is_placeholder(word) or (self.root / f"include/intaglio/kernels/spirv/{word}.hpp").is_file()
                else:
                    known = command == "test" and (word in self.steps or is_placeholder(word))
                if not known:
                    yield f"./dev {command} {word}: expected an option, a step or a module that ./dev knows"

    def program_problems(self, program, arguments):
        if program == "intaglio" and arguments[:1] == ["serve"]:  # hands its arguments on
            program, arguments = "intaglio-serve", arguments[1:]
        chain, known = (), self.help(program)
        while known.commands and arguments and not arguments[0].startswith("-"):
            if arguments[0] not in known.commands:
                if not is_placeholder(arguments[0]):
                    yield (
                        f"{program}: expected one of its commands {', '.join(sorted(known.commands))}, found"
                        f" '{arguments[0]}'"
                    )
                return
            chain, arguments = (*chain, arguments[0]), arguments[1:]
            known = self.help(program, chain)
        command, operands = " ".join((program, *chain)), 0
        while arguments:
            word, arguments = arguments[0], arguments[1:]
            if not word.startswith("-") or word == "-":
                operands += 1
                continue
            option, joined, value = word.partition("=")
            if option == "-hf":  # llama.cpp's spelling, which the programs read as --hf
                option = "--hf"
            if option not in known.options:
                yield f"{command}: expected an option of its --help, found '{option}'"
                continue
            if not known.options[option]:
                continue
            if not joined:
                if not arguments:
                    if self.complete:
                        yield f"{command} {option}: expected a value ({known.options[option]}), found none"
                    continue
                value, arguments = arguments[0], arguments[1:]
            choices = re.search(r"\{([^}]*)\}", known.options[option])
            if choices and value not in choices[1].split(",") and not is_placeholder(value):
                yield f"{command} {option}: expected one of {choices[1]}, found '{value}'"
        most = len(known.operands)
        if operands > most and not any("..." in each for each in known.operands):
            yield f"{command}: expected at most {most} operands, found {operands}"

    complete = True  # a command of a block; in a sentence an option may be named without its value

    def own_problems(self, program, arguments):
        path = self.root / program.removeprefix("build/")
        sources = [path] if path.is_file() else sorted(path.glob("*.cpp"))
        if not sources:
            yield f"{program}: expected a program of the tree, found none"
            return
        text = "".join(source.read_text(encoding="utf-8") for source in sources)
        for word in arguments:
            option = word.partition("=")[0]
            if option.startswith("-") and option not in ("-", "--help") and f'"{option}"' not in text:
                yield f"{program}: expected an option that its source names, found '{option}'"

    def cmake_problems(self, arguments):
        for word, value in zip(arguments, [*arguments[1:], ""]):
            variable = re.match(r"-D(INTAGLIO_\w+)", word)
            if variable and variable[1] not in self.cmake:
                yield f"cmake {word}: expected an option of the tree's CMake files, found none"
            if word == "--preset" and f'"name": "{value}"' not in self.cmake:
                yield f"cmake --preset {value}: expected a preset of CMakePresets.json, found none"
            if word == "--target" and not re.search(rf"\b{re.escape(value)}\b", self.cmake):
                yield f"cmake --target {value}: expected a target of the tree's CMake files, found none"
