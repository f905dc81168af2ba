# SPDX-License-Identifier: Apache-2.0
"""Names that there were: each is refused in one sentence that says what there is instead."""

import pytest

from drone_bridge.tools.cli import COMMANDS, REFUSED, REMOVED, main
from drone_bridge.tools.launch.arguments import REMOVED as REMOVED_ARGUMENTS

DEMONSTRATIONS = ("demo all", "demo any", "demo fleet", "demo landings", "demo worlds")


@pytest.mark.parametrize("name", ["check", "export --tum", "fleet", "flights", "grade", *DEMONSTRATIONS])
def test_a_command_that_was_removed_is_refused_in_one_sentence(name, capsys):
    assert main([*name.split(), "some", "--arguments"]) == REFUSED
    printed = capsys.readouterr()
    assert printed.err == f"drone-bridge {name} was removed: {REMOVED[name]}.\n"
    assert not printed.out


def test_an_option_that_was_removed_is_refused_wherever_it_stands(capsys):
    assert main(["export", "flight", "-o", "poses", "--tum"]) == REFUSED
    assert capsys.readouterr().err.startswith("drone-bridge export --tum was removed: ")


def test_no_command_is_both_there_and_removed():
    assert not COMMANDS.keys() & REMOVED.keys()


@pytest.mark.parametrize("name", REMOVED_ARGUMENTS)
def test_a_launch_argument_that_was_removed_is_refused_in_one_sentence(name, capsys):
    assert main(["launch", "landing.launch.xml", f"{name}:=false"]) == REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"landing.launch.xml: the launch argument '{name}' was removed: {REMOVED_ARGUMENTS[name]}")
