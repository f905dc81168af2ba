# SPDX-License-Identifier: Apache-2.0
"""Commands that are printed: on pages, in docstrings and comments, in help texts, and by programs."""

import ast
import contextlib
import io
import re
from collections import defaultdict
from itertools import chain

from repository import ROOT

from drone_bridge.kind import kinds, load
from drone_bridge.tools.command_parser import EXAMPLES

#: Files by kind.
PAGES = ("*.md", "docs/*.md", "examples/**/*.md", "msg/*.md", "test/README.md", "measure/README.md")
PROGRAMS = ("drone_bridge/**/*.py", "examples/**/*.py", "env/*.py", "docs/*.py", "measure/*.py")
OTHERS = ("launch/**/*.xml", "examples/**/*.xml", "config/**/*.*", "web/src/*.ts", "Makefile", "env/activate")
TABLE = ROOT / "test" / "printed" / "README.md"

BEGINS = r"(?:[A-Z_]+=\S+ )*(?:drone-bridge|ros2|make|pip|pixi|python3?|pytest|docker|uv|\. env/activate)(?![\w.-])"
#: In a sentence: between back quotes or single ones, which may hold another pair.
QUOTED = re.compile(rf"`({BEGINS}[^`\n]*)`|'({BEGINS} [^'\n]*(?:'[^'\n]*'[^'\n]*)?)'")
#: In a line of its own, or after a colon up to the end of one.
ALONE = re.compile(rf"^(?: +|(?=drone-bridge \w+ ))({BEGINS} [^\n]*?)(?: -->)?$|: ({BEGINS} [^\n]*)$", re.MULTILINE)
#: What follows it in a sentence.
REST = re.compile(r"\.? *$|\. [A-Z`].*|[;)](?![^']*').*|, (?:or|without) .*")
#: No command, but the name of one, or a message of one.
NAME = re.compile(
    r"(docker|pip|pytest|uv|drone-bridge)( \S+)?|ros2( [a-z_]+)*( \.+)?|python3?( -\S+)?|make( [a-z]+ .*)?"
    r"|drone-bridge (param|service|topic|wire) \w+|drone-bridge [\w… ]+: .*|.*\\1.*|.*(\.{3}|….*…).*"
)
#: What runs without arguments.
WITHOUT = {f"drone-bridge {verb}" for verb in ("doctor", "hold", "record", "resume", "view")}


def plain(command):
    """Return a command without comment and layout."""
    command = command if "<<" in command else re.sub(r"(?:^|\s)#\s.*", "", command)
    return re.sub(r"\s+", " ", command.replace("\\\n", " ")).strip()


def in_blocks(page):
    """Yield the commands of a page's sh blocks, as they are typed."""
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        lines = iter(block.splitlines())
        for line in lines:
            command = line
            while _goes_on(command):
                command += "\n" + next(lines)
            if plain(command):
                yield command


def _goes_on(command):
    if "<<'END'" in command:
        return not command.endswith("\nEND")
    is_loop = command.startswith("for ") and not re.search(r"\bdone\b", command)
    return is_loop or command.endswith("\\") or plain(command).count("'") % 2 == 1


def in_text(text):
    """Yield the commands in sentences, and in lines of their own."""
    for found in chain(QUOTED.findall(text), ALONE.findall(text)):
        command = REST.sub("", plain("".join(found)))
        command = command.removesuffix("'") if command.count("'") % 2 else command
        if command in WITHOUT or not NAME.fullmatch(command):
            yield command


def _literals(program):
    """Yield the texts of a program; … stands for what it inserts."""
    tree = ast.parse(program)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def in_help():
    """Yield the examples at the ends of the help texts of commands, emulators and operators."""
    yield from (f"drone-bridge {example}" for example in EXAMPLES)
    for kind in kinds().values():
        for verb, program in (("emulate", kind.emulator), ("operate", kind.operator)):
            if program:
                with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
                    load(program.main)(["--help"])
                yield f"drone-bridge {verb} {kind.name} --{said.getvalue().rstrip().rpartition(' --')[2]}"


def as_typed(command):
    """Return a command with its line breaks."""
    pages = (file.read_text() for pattern in PAGES for file in ROOT.glob(pattern))
    return next((each for page in pages for each in in_blocks(page) if plain(each) == command), command)


def printed():
    """Return the files in which each command is printed."""
    found = defaultdict(set, {example: {"its --help"} for example in in_help()})
    kinds = (
        (
            PAGES,
            lambda text: chain(map(plain, in_blocks(text)), in_text(re.sub(r"```.*?```", "", text, flags=re.DOTALL))),
        ),
        (PROGRAMS, lambda text: chain.from_iterable(map(in_text, _literals(text)))),
        # Each launch file names both runners in its first comment.
        (OTHERS, lambda text: in_text(text.replace("ros2 launch drone_bridge", "drone-bridge launch"))),
    )
    for patterns, commands in kinds:
        for file in chain.from_iterable(map(ROOT.glob, patterns)):
            text = file.read_text()
            for command in commands(text) if re.search(BEGINS, text) else ():
                found[command].add(str(file.relative_to(ROOT)))
    return found


def cells(heading):
    """Return the cells of each row below a heading of the table. A command in brackets is not a printed one."""
    section = re.split(rf"^##+ {heading}.*$", TABLE.read_text(), flags=re.MULTILINE)[1].partition("\n##")[0]
    rows = re.findall(r"^\| (\(?`.*) \|$", section, re.MULTILINE)
    return [[re.sub(r"^\(?`|`\)?$", "", each.strip()) for each in row.split(" |")] for row in rows]


def machines():
    """Return what is typed on each machine of the night: commands, how they end, and what is true then."""
    found = {each: cells(each) for each in re.findall("^### (.*)$", TABLE.read_text(), re.MULTILINE)}
    for command, other, ends, truth in cells("Each night: typed beside"):
        alone = [(command, ends, truth)]
        found[f"{command} {other}"] = [(other, "stays", truth), (command, ends, "")] if other else alone
    return found


def rows():
    """Return the file and the name of the test that runs each command of the table. A row without one has neither."""
    found = {}
    for line in TABLE.read_text().partition("\n## README's sentences")[0].splitlines():
        if match := re.fullmatch(r"\| `(.+?)` \|(?: (test_\w+\.py)::(test_\w+) \|)?.*", line):
            command, *test = match.groups(default="")
            found[command] = tuple(test)
    return found
