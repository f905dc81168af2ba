# SPDX-License-Identifier: Apache-2.0
"""The table of printed commands: complete, true to the tests that run them, and with files and arguments that exist."""

import ast
import configparser
import re
from itertools import chain

import pytest
from pages import PAGES, cells, plain, printed, rows
from repository import ROOT, TESTS

from drone_bridge.kind import kinds
from drone_bridge.tools import cli
from drone_bridge.tools.cli import COMMANDS, WITH_SUBCOMMANDS
from drone_bridge.tools.launch.arguments import declared_in
from drone_bridge.tools.launch.command import file_of_package
from drone_bridge.tools.launch.parse import load

PRINTED = printed()
ROWS = rows()
BESIDE = {other for _, other, *_ in cells("Each night: typed beside")}
#: What stands for a name.
FORM = re.compile(r"[<>…{}]|\bNAME\b|\bmy_\w+")
#: A command of ours with options, but for those of ROS.
OPTIONS = re.compile(r"drone-bridge \w+(?!.*--ros-args) .*--\w")
LAUNCHED = re.compile(r"([\w./]+\.launch\.xml|(?<=bridge launch )[a-z]\w*)((?: +\w+:=(?:'[^'\n]*'|[^\s'`]*))*)")
OURS = re.compile(r"(?<![\w~./<-])(?:config|docs|env|examples|measure|test)/[\w./@-]+\w")


def test_each_printed_command_has_a_row():
    missing = {command: sorted(places) for command, places in PRINTED.items() if command not in {*ROWS, *BESIDE}}
    assert missing == {}, "each needs a row in test/printed/README.md, and a test that runs it as printed"


def test_each_row_is_printed():
    assert [command for command in ROWS if command not in PRINTED] == []


@pytest.mark.parametrize("file", sorted({file for file, _ in ROWS.values() if file}))
def test_a_row_s_test_runs_it(file):
    tree = ast.parse((TESTS / "printed" / file).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    texts = {
        plain(line)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for line in (node.value, *node.value.splitlines())
    }
    for command, (at, test) in ROWS.items():
        if at == file:
            assert test in names, f"{command}: {file} has no {test}"
            assert command in texts, f"{command} is not in {file}"


def test_launch_files_have_the_arguments_that_are_printed():
    wrong = []
    for page in chain.from_iterable(map(ROOT.glob, PAGES)):
        for name, given in LAUNCHED.findall(page.read_text()):
            if FORM.search(name) or ("/" in name and not (ROOT / name).exists()):
                continue
            declared = declared_in(load(ROOT / name if "/" in name else file_of_package("drone_bridge", name)))
            unknown = {each.partition(":=")[0] for each in given.split() if ":=" in each} - declared.keys()
            wrong += [f"{page.name}: {name} has no {each}" for each in unknown]
    assert wrong == []


def test_files_and_targets_exist():
    targets = re.findall(r"^([\w ]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    extras = configparser.ConfigParser()
    extras.read(ROOT / "setup.cfg")
    modules = [path.relative_to(ROOT).with_suffix("").parts for path in ROOT.glob("drone_bridge/**/*.py")]
    known = {
        r"(?<!\S)make ([a-z_]+)": {name for each in targets for name in each.split()},
        r"drone_bridge\[(\w+)\]": {*extras["options.extras_require"], "ros"},
        r"drone-bridge ([a-z]+)": {*COMMANDS, "stop"},
        r"drone-bridge (?:emulate|operate) (?!my_)([a-z]\w*)": {*kinds()},
        r"-m (drone_bridge[\w.]+)": {".".join(each).removesuffix(".__main__") for each in modules},
    }
    wrong = [path for command in PRINTED for path in OURS.findall(command) if not (ROOT / path).exists()]
    for pattern, names in known.items():
        wrong += [command for command in PRINTED for name in re.findall(pattern, command) if name not in names]
    assert wrong == []


@pytest.mark.parametrize("command", sorted(each for each in PRINTED if OPTIONS.match(each)))
def test_options_are_those_of_the_command(command, capsys, monkeypatch):
    monkeypatch.setattr(cli, "complete_environment", lambda: None)  # it may start pytest again
    words = command.split()[1:]
    verbs = words[: 2 if words[0] in WITH_SUBCOMMANDS else 1]
    with pytest.raises(SystemExit, match="0"):
        cli.main([word if word in COMMANDS or word in kinds() else "create2" for word in verbs] + ["--help"])
    text = capsys.readouterr().out
    assert [option for option in re.findall(r" (--[a-z-]+)", command) if option not in text] == []


def test_each_sentence_of_readme_about_what_you_get_and_safety_has_a_test():
    page = (ROOT / "README.md").read_text().partition("## What you get")[2].partition("\nThis is no")[0]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", page)
    sentences = [each for line in re.findall("^- (.*)$", text, re.MULTILINE) for each in re.split(r"(?<=\w\.) ", line)]
    promises = cells("README's sentences")
    for sentence in sentences:
        assert any(sentence.startswith(beginning) for beginning, *_ in promises), f"no row for: {sentence}"
    for beginning, tests, _ in promises:
        assert any(sentence.startswith(beginning) for sentence in sentences), f"README does not say: {beginning}"
        for file, name in re.findall(r"([\w/]+\.py)::(\w+)", tests):
            assert f"def {name}(" in (TESTS / file).read_text(), f"{file} has no {name}"
