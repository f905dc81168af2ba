# SPDX-License-Identifier: Apache-2.0
"""Measuring: what programs use, and run.py, which ends what steps leave."""

import re
import signal
import sys
from pathlib import Path

import programs
import pytest
from repository import ROOT

pytestmark = pytest.mark.exhaustive

RUN = ROOT / "measure" / "run.py"


# That it would find something.


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ((104_000, 20, 5), []),
        ((120_000, 20, 5), ["has grown by 19.5 MiB since the first third"]),
        ((100_000, 21, 5), ["1 descriptors more than at first"]),
        ((100_000, 20, 7), ["2 threads more than at first"]),
    ],
)
def test_growth_is_found(last, found):
    assert programs.grown([(99_000, 20, 5), (100_000, 22, 9), (100_000, 20, 5), last]) == found


@pytest.mark.parametrize(
    ("output", "is_pythons"),
    [
        ("Fatal Python error: init_import_site: Failed to import the site module\nKeyboardInterrupt\n", True),
        ('Traceback:\n  File "lib/drone_bridge/robot_bridge", line 3\n    import signal\nKeyboardInterrupt\n', True),
        ('Traceback:\n  File "drone_bridge/robot/bridge/node.py", line 9\nKeyboardInterrupt\n', False),
        ('Traceback:\n  File "drone_bridge/ros/node/program.py", line 40\nKeyboardInterrupt\n', False),
        ("ValueError: no such thing\n", False),
        ("", False),
    ],
)
def test_only_interrupts_before_the_programs_first_lines_are_pythons_own(output, is_pythons):
    assert programs.is_from_pythons_start(output) is is_pythons


# The runner.


@pytest.fixture
def run(tmp_path, start_child):
    """run(step="source of main's body", ...) starts run.py on a folder with these steps."""
    folder = tmp_path / "steps"
    folder.mkdir()

    def start(*options, shell=(), **bodies):
        for name, body in bodies.items():
            (folder / f"{name}.py").write_text(f'"""Does {name}."""\n\n\ndef main(short):\n    {body}\n')
        return start_child(*shell, sys.executable, RUN, "--folder", folder, *options)

    return start


def verdicts(output):
    """Return how each step of a run ended, by the table that it printed last."""
    return dict(re.findall(r"^(\w+) +(ok|FAILED|not here) +\d+ s\b", output, re.MULTILINE))


def is_there(pid):
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("body", "verdict", "figure"),
    [
        ("print('3 rounds'); print('1.5 m/s'); return 0", "ok", "1.5 m/s"),
        ("print('the robot drove on'); return 1", "FAILED", "the robot drove on"),
        ("raise AssertionError('nothing came')", "FAILED", "crashed: AssertionError: nothing came"),
        ("import os; os._exit(3)", "FAILED", "exited with status 3"),
        ("from step import NotHereError; raise NotHereError('It needs ip(8).')", "not here", "It needs ip(8)."),
    ],
)
def test_the_status_of_a_run_is_that_of_its_steps(run, body, verdict, figure):
    done = run(other="print('short' if short else 'whole'); return 0", that=body)
    assert done.wait() == (verdict == "FAILED")
    assert verdicts(done.output) == {"other": "ok", "that": verdict}
    assert re.search(rf"^other .*  whole$\n^that .*  {re.escape(figure)}$\n^Steps: 2 in", done.output, re.MULTILINE)


#: Starts a process that leaves its group, and writes down which it is.
LEAVE = (
    "import signal, subprocess; from pathlib import Path; "
    "child = subprocess.Popen(['sleep', '1000'], start_new_session=True); "
    "Path(__file__).with_name('pid').write_text(str(child.pid)); print('left', child.pid, flush=True); "
)


def test_a_step_that_hangs_says_where_and_fails_and_the_next_one_is_run(run):
    done = run(
        "--limit", 5, hangs=LEAVE + "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()", next="return 0"
    )
    assert done.wait() == 1
    found = verdicts(done.output)  # the limit is for the next one as well, and its start may take that long
    assert (list(found), found["hangs"]) == (["hangs", "next"], "FAILED")
    assert "exceeded the limit of 5 s" in done.output
    assert "in main" in done.output  # of the dump
    assert not is_there(int(re.search(r"left (\d+)", done.output)[1]))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_ends_all_and_tells_how_far_it_came(run, number):
    """From a shell that has it ignore SIGINT as well."""
    shell = ("env", "--ignore-signal=INT")
    running = run(
        shell=shell,
        first="return 0",
        hangs=LEAVE + "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()",
        last="return 0",
    )
    pid = int(running.wait_for_line(r"left (\d+)")[1])
    assert running.stop(number) == 130
    assert verdicts(running.output) == {"first": "ok"}
    assert not is_there(pid)
