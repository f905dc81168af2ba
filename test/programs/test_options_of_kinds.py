# SPDX-License-Identifier: Apache-2.0
"""Options that a ProtocolKind names exist: launch files, `check` and campaigns pass them to emulators and operators."""

import re

import pytest

from drone_bridge.kind import kinds, load


@pytest.mark.parametrize(
    "program",
    [program for kind in kinds().values() for program in (kind.emulator, kind.operator) if program],
    ids=lambda program: program.main,
)
def test_a_program_has_the_options_of_its_kind(program, capsys):
    with pytest.raises(SystemExit):
        load(program.main)(["--help"])
    usage, _, example = capsys.readouterr().out.rpartition("\nexample: ")
    assert f" {re.search(r'--[a-z]+', example)[0]} " in usage
    for option in (*program.agreed.values(), *program.apart, *program.at_once):
        assert f"--{option} " in usage or f"--{option}\n" in usage
