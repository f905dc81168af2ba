# SPDX-License-Identifier: Apache-2.0
"""The runner with real processes: output, signals, and process groups. `test_supervisor.py` has its rules."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
from xml.sax.saxutils import quoteattr

import pytest
from composition import RUNNER
from processes import executable, members
from ros_session import wait_until

PATIENCE_S = 60

# Scripts of the processes. Each reports when it is ready, and waits in a builtin, on an empty pipe: bash loses a SIGINT
# between the fork of a command and its exec.
PAUSE = "read -t 0.05 -u 3"
OPEN = "exec 3<> <(:)"
WAIT = f"trap 'echo neutral; exit' INT; {OPEN}; echo ready; while :; do {PAUSE}; done"
STUBBORN = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done"
FAMILY = "sleep 1001 & (trap '' INT TERM; sleep 1002) & echo ready; wait"


COMMAND = executable("drone-bridge")


def shell(script, **attributes):
    """Return an <executable> that runs a script."""
    given = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    command = quoteattr(f'bash -c "{script}"')
    return f"<executable cmd={command}{given}/>"


@pytest.fixture
def launch_file(tmp_path):
    """Return a function that writes a file with these executables, and returns its path."""

    def write(*elements):
        path = tmp_path / "some.launch.xml"
        path.write_text(f"<launch>{''.join(elements)}</launch>")
        return path

    return write


@pytest.fixture
def launch(launch_file, start_child):
    """Return a function that starts the runner on a file with these executables."""

    def start(*elements, hangup="default", runner=RUNNER):
        # Ignoring SIGHUP is inherited, perhaps from a nohup around all tests.
        return start_child("env", f"--{hangup}-signal=HUP", *runner, "launch", launch_file(*elements))

    return start


def pid_of(runner, label):
    return int(runner.wait_for_line(rf"\[launch\] {label} started \(pid (\d+)\)")[1])


def test_all_end_well(launch):
    elements = shell("echo one; echo [$LAUNCH_TEST] >&2", name="a"), shell("printf unfinished", name="b")
    runner = launch('<set_env name="LAUNCH_TEST" value="set"/>', *elements)
    assert runner.wait() == 0
    assert {"[a-1] one", "[a-1] [set]", "[b-2] unfinished"} <= set(runner.lines)
    assert re.search(r"\[launch\] a-1 ended \(pid \d+\)", runner.output)


def test_a_hangup_is_ignored_under_nohup(launch):
    runner = launch(shell(WAIT, name="waits"), hangup="ignore")
    runner.wait_for_line(r"\[waits-1\] ready")
    runner.send(signal.SIGHUP)
    runner.send(signal.SIGINT)  # which the kernel delivers after the lower number
    assert runner.wait() == 130
    assert runner.count_lines("SIGHUP") == 0


def test_stubborn_processes_and_grandchildren_are_gone_in_the_end(launch):
    labels, scripts = ("stubborn-1", "family-2", "waits-3"), (STUBBORN, FAMILY, WAIT)
    runner = launch(
        *(shell(script, name=label[:-2]) for script, label in zip(scripts, labels, strict=True)), runner=[COMMAND]
    )
    groups = [pid_of(runner, label) for label in labels]
    for label in labels:
        runner.wait_for_line(rf"\[{label}\] ready")
    assert len(members(groups[1])) >= 3
    runner.send(signal.SIGINT)
    runner.wait_for_line(r"stubborn-1 was ended by SIGKILL")
    assert runner.wait() == 130
    assert members(*groups) == []
    runner.wait_for_line(r"stubborn-1 has not stopped, and gets SIGTERM")
    runner.wait_for_line(r"stubborn-1 has not stopped, and gets SIGKILL")


def test_orphans_of_a_process_are_stopped(launch):
    runner = launch(shell("sleep 1003 & echo ready", name="leaves"))
    group = pid_of(runner, "leaves-1")
    assert runner.wait() == 0
    runner.wait_for_line("leaves-1 has left processes behind")
    assert members(group) == []


def test_processes_do_not_outlive_a_killed_runner(launch):
    runner = launch(shell(f"trap 'exit' TERM; {OPEN}; echo ready; while :; do {PAUSE}; done", name="a"))
    process = os.pidfd_open(pid_of(runner, "a-1"))
    runner.wait_for_line(r"\[a-1\] ready")
    runner.send(signal.SIGKILL)
    ended, _, _ = select.select([process], [], [], PATIENCE_S)
    os.close(process)
    assert ended


def test_our_nodes_start_without_ctrl_c_of_which_python_would_show_a_traceback(launch, tmp_path):
    ours, other = (tmp_path / "lib" / package / "node" for package in ("drone_bridge", "other"))
    for program in (ours, other):
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\nexec grep SigBlk /proc/self/status\n")
        program.chmod(0o755)
    run = launch(f"<executable cmd='{ours}' name='ours'/>", f"<executable cmd='{other}' name='other'/>")
    assert run.wait(PATIENCE_S) == 0
    blocked = {name: int(run.wait_for_line(f"{name}-.*SigBlk:\\s*(\\w+)")[1], 16) for name in ("ours", "other")}
    assert {name: bool(each & 1 << signal.SIGINT - 1) for name, each in blocked.items()} == {
        "ours": True,
        "other": False,
    }


def test_endless_line_is_cut(launch):
    runner = launch(shell("head -c 1000000 /dev/zero | tr '\\\\0' x", name="a"))
    assert runner.wait() == 0
    cut = [line.removeprefix("[a-1] ") for line in runner.lines if line.startswith("[a-1] ")]
    assert "".join(cut) == "x" * 1_000_000
    assert max(map(len, cut)) <= 16 * 1024


def test_stalled_screen_blocks_no_process(launch_file, tmp_path):
    """The runner drops lines, and counts them where they are missing; the last ones are shown."""
    flood = f"yes {'x' * 99} | head -n 50000; touch {tmp_path}/written"
    script = f"{flood}; until [ -e {tmp_path}/read ]; do sleep 0.05; done; echo last"
    command = [COMMAND, "launch", launch_file(shell(script, name="flood"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as runner:
        wait_until((tmp_path / "written").exists, "the process to have written all")
        (tmp_path / "read").touch()
        lines = runner.stdout.read().decode().splitlines()
        assert runner.wait(PATIENCE_S) == 0
    dropped = [int(found[1]) for line in lines if (found := re.search(r"Dropped (\d+) lines", line))]
    assert dropped
    assert lines[-1] == "[flood-1] last"
    assert sum(dropped) + len(lines) - len(dropped) == 50001


def test_last_lines_after_the_exit_of_a_process_are_shown(launch, tmp_path):
    """As a log writer's: in its own group, and with the output of a process that has exited."""
    writer = f"setsid sh -c 'touch {tmp_path}/apart; sleep 0.3; echo late'"
    runner = launch(shell(f"{writer} & until [ -e {tmp_path}/apart ]; do sleep 0.05; done", name="a"))
    assert runner.wait() == 0
    assert "[a-1] late" in runner.lines
    assert runner.count_lines("left processes behind") == 0


def test_a_terminal_reaches_the_runner_alone(launch_file):
    """A typed Ctrl-C reaches each process once, from the runner."""
    loop = "until ((left == 1)); do read -t 0.1 -u 3; ((left--)); done"
    script = f"trap 'echo caught; left=6' INT; {OPEN}; left=0; echo ready; {loop}"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(COMMAND, [COMMAND, "launch", launch_file(shell(script, name="a"))])
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while data := os.read(terminal, 4096):
            if b"ready" not in shown and b"ready" in shown + data:
                os.write(terminal, b"\x03")
            shown += data
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    assert shown.count(b"caught") == 1


@pytest.mark.parametrize("words", [["launch", "--show-args", "testbed.launch.xml"], ["launch", "--help"], ["--help"]])
def test_a_closed_output_pipe_is_no_error(words):
    reading, writing = os.pipe()
    os.close(reading)
    command = [COMMAND, *words]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    os.close(writing)
    assert done.returncode in (128 + signal.SIGPIPE, 0)  # argparse does not report its own broken pipe
    assert done.stderr == ""
