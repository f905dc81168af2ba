# SPDX-License-Identifier: Apache-2.0
"""The table's rows of each night: typed as printed, one after another on a machine, and judged by other witnesses."""

import re
import time

import pytest
from pages import as_typed, cells, machines
from repository import ROOT
from shell import Shell
from witnesses import page_of, shows, topics, way

pytestmark = pytest.mark.exhaustive

#: What a command says that stays until the end of the machine.
READY = r"[Ll]istening|[Ww]aiting|sending|Trying again|\bConnected\b|[Pp]ublishing|Playing|described|ready|Serving|^at "
GOES = re.compile(r"goes (\S+) to (\S+) m")
BAG = re.compile(r"(\S+) has (/.*)")
#: What is typed in place of a word.
CHOSEN = dict(cells("Names in place"))


@pytest.mark.parametrize("rows", [pytest.param(rows, id=each[-150:]) for each, rows in machines().items()])
def test_a_machine(rows):
    with Shell() as shell:
        staying, beside = [], ""
        for command, ends, truth in rows:
            beside += words(command, ends)
            if command.endswith("&"):
                continue
            typed, beside = shell.start(beside), ""
            if ends == "stays":
                typed.wait_for_line(READY)
                staying.append((typed, truth))
                continue
            if seconds := re.fullmatch(r"(\d+) s", ends):
                time.sleep(int(seconds[1]))
            elif ends.startswith(("itself", "then ")):
                assert typed.wait(600) == 0, typed.text
            elif ends.startswith("page: "):
                with page_of(shell, typed) as page:
                    shows(page, ends.removeprefix("page: ").strip("`"))
            elif ends.startswith("says "):
                typed.wait_for_line(ends.removeprefix("says ").strip("`"))
            else:
                (staying[0][0] if staying else typed).wait_for_line(ends, 120)
            judge(shell, typed.ctrl_c(), truth)
        for typed, truth in reversed(staying):
            judge(shell, typed.ctrl_c(), truth)


def words(command, ends):
    """Return what a person types."""
    typed = as_typed(command)
    for word, name in CHOSEN.items():
        typed = typed.replace(word, name)
    return f"{typed}\n{ends.partition('then `')[2]}\n"


def judge(shell, said, truth):
    """Require what a cell says: how far a vehicle went, the topics of a bag, or a text."""
    assert not re.search(r"\bERROR\b| died\b", said), said
    for each in truth.split(" and "):
        if metres := GOES.fullmatch(each):
            assert float(metres[1]) <= way(said) <= float(metres[2]), said
        elif bag := BAG.fullmatch(each):
            assert topics(shell.path(ROOT, bag[1])).keys() >= {*bag[2].split()}, said
        else:
            assert re.search(each.strip("`"), said), said
