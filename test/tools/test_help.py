# SPDX-License-Identifier: Apache-2.0
"""The help of each command and program ends with one example of it. Words that people type are understood."""

import io
import os
import re
import sys
from unittest.mock import Mock

import pytest

from drone_bridge.robot_class.vehicle import emulator
from drone_bridge.tools import cli
from drone_bridge.tools.cli import COMMANDS, main
from drone_bridge.tools.command_parser import EXAMPLES

VERBS = sorted({" ".join(each.split()[:2]) for each in EXAMPLES if re.match("node|topic|service|param|wire", each)})


@pytest.mark.parametrize("command", ["", *COMMANDS, *VERBS])
def test_help_of_a_command_ends_with_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*command.split(), "--help"])
    text, _, example = capsys.readouterr().out.rstrip().rpartition("\nexample: ")
    assert f"{example} ".startswith(" ".join(["drone-bridge", *command.split(), ""]))
    for option in re.findall(" --?[a-z]+ ", f"{example} "):
        assert option.strip() in re.split("[ ,]+", text)


def test_each_verb_has_an_example(capsys):
    for command in {verb.split()[0] for verb in VERBS}:
        with pytest.raises(SystemExit, match="2"):
            main([command, "none"])
        verbs = re.findall(r"\w+", capsys.readouterr().err.partition("choose from")[2])
        assert [f"{command} {verb}" for verb in sorted(verbs)] == [each for each in VERBS if each.split()[0] == command]


def test_letters_that_the_locale_lacks_are_escaped(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(cli, "_run", lambda chosen: print("a robot für Übungen"))
    main(["info", "mine"])
    assert output.buffer.getvalue() == rb"a robot f\xfcr \xdcbungen" + b"\n"


def test_stop_holds():
    chosen = cli._parse(["stop", "/drone"])
    assert (chosen.command, chosen.arguments) == ("hold", ["/drone"])


@pytest.mark.parametrize("words", [["recorder", "-h"], ["drone_bridge", "recorder", "-h"]])
def test_a_node_is_run_with_or_without_the_package(words, monkeypatch):
    run = Mock()
    monkeypatch.setattr(os, "execv", run)
    main(["run", *words])
    assert run.call_args.args[1] == ["recorder", "-h"]


@pytest.mark.parametrize("words", [[], ["tello"]])
def test_help_of_an_emulator_of_any_robot_names_a_robot(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["robot_class_emulator", *words, "--help"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    with pytest.raises(SystemExit, match="0"):
        sys.exit(emulator.named())
    assert capsys.readouterr().out.endswith("\nexample: robot_class_emulator tello --duration 60\n")
