# SPDX-License-Identifier: Apache-2.0
"""The table's rows of each night: typed as printed, beside a vehicle or a program, and judged by what that says."""

import re
import time

import pytest
from pages import cells
from shell import Shell
from witnesses import way

pytestmark = pytest.mark.exhaustive

GOES = re.compile(r"goes (\S+) to (\S+) m")


@pytest.mark.parametrize(("command", "beside", "ends", "truth"), cells("Each night"), ids=lambda each: each[-60:])
def test_a_command(command, beside, ends, truth):
    with Shell() as shell:
        other = shell.start(beside) if beside else None
        if other:
            other.wait_for_line("listening|waiting|sending")
        typed = shell.start(command)
        if seconds := re.fullmatch(r"(\d+) s", ends):
            time.sleep(int(seconds[1]))
        elif ends == "itself":
            assert typed.wait(120) == 0, typed.text
        else:
            (other or typed).wait_for_line(ends, 120)
        said = typed.ctrl_c()
        assert not re.search(r"\bERROR\b| died\b", said), said
        said = other.ctrl_c() if other else said
        if metres := GOES.fullmatch(truth):
            assert float(metres[1]) <= way(said) <= float(metres[2]), said
        else:
            assert re.search(truth, said), said
