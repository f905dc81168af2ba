# SPDX-License-Identifier: Apache-2.0
"""The runner with real processes: display, monitoring and shutdown."""

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

from drone_bridge.ros.hold.wish_file import WishFiles
from drone_bridge.ros.process.environment import domain_of

PATIENCE_S = 60

# Scripts of the processes. Each reports when it is ready, and waits in a builtin, on an empty pipe: bash loses a SIGINT
# between the fork of a command and its exec.
PAUSE = "read -t 0.05 -u 3"
OPEN = "exec 3<> <(:)"
WAIT = f"trap 'echo neutral; exit' INT; {OPEN}; echo ready; while :; do {PAUSE}; done"
STUBBORN = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done"
FAMILY = "sleep 1001 & (trap '' INT TERM; sleep 1002) & echo ready; wait"


COMMAND = executable("drone-bridge")


def shell(script, *, ends_launch=False, **attributes):
    """Return an <executable> that runs a script."""
    given = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    command = quoteattr(f'bash -c "{script}"{" --ends-launch" * ends_launch}')
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
    runner = launch(shell("echo one; echo two >&2", name="a"), shell("printf unfinished", name="b"))
    assert runner.wait() == 0
    assert {"[a-1] one", "[a-1] two", "[b-2] unfinished"} <= set(runner.lines)
    assert re.search(r"\[launch\] a-1 ended \(pid \d+\)", runner.output)


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("exit 3", "failed with exit status 3"),
        ("kill -SEGV $$", "was ended by SIGSEGV"),
        ("kill -36 $$", "was ended by signal 36"),
    ],
)
def test_failure_is_reported_and_the_others_continue(launch, script, how):
    runner = launch(shell(script, name="a"), shell("sleep 0.5; echo on", name="b"))
    assert runner.wait() == 1
    runner.wait_for_line(rf"\[launch\] a-1 {how} ")
    runner.wait_for_line(r"\[b-2\] on")


def program(path, script):
    """Write a script of this name, and return its <executable>."""
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return f"<executable cmd='{path}'/>"


def test_a_controller_that_cannot_start_ends_everything(launch, tmp_path):
    ready = tmp_path / "ready"
    ends = "echo no cv2 >&2; echo '[log] No log file' >&2; exit 2"  # the latter is not why
    runner = launch(
        shell(WAIT.replace("echo ready", f"touch {ready}"), name="waits"),
        program(tmp_path / "some_controller", f"until [ -e {ready} ]; do sleep 0.05; done; {ends}"),
    )
    assert runner.wait(PATIENCE_S) == 2
    assert runner.count_lines(r"\[launch\] some_controller-2 can't start") == 1
    assert "[waits-1] neutral" in runner.lines
    assert re.fullmatch(r"\[launch\] some_controller-2 .* 2: no cv2", runner.lines[-1])


def test_a_controller_that_fails_later_does_not_end_the_others(launch, tmp_path):
    runner = launch(program(tmp_path / "some_controller", "exit 1"), shell("sleep 0.5; echo on", name="b"))
    assert runner.wait() == 1
    runner.wait_for_line(r"\[b-2\] on")


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_end_of_a_required_process_ends_everything(launch, tmp_path, script, status):
    ready = tmp_path / "ready"
    runner = launch(
        shell(WAIT.replace("echo ready", f"touch {ready}"), name="waits"),
        shell(f"until [ -e {ready} ]; do sleep 0.05; done; {script}", name="last", ends_launch=True),
    )
    assert runner.wait(PATIENCE_S) == status
    assert "[launch] last-2 is required: stopping everything" in runner.lines
    assert "[waits-1] neutral" in runner.lines


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signal_stops_all_in_reverse_order(launch, number):
    runner = launch(*(shell(WAIT, name=name) for name in ("emulator", "bridge", "controller")))
    for label in ("emulator-1", "bridge-2", "controller-3"):
        runner.wait_for_line(rf"\[{label}\] ready")
    runner.send(number)
    assert runner.wait() == 128 + number
    stopped = [line for line in runner.lines if re.search("neutral|ended", line)]
    order = [re.search(r"(emulator|bridge|controller)-\d", line)[0] for line in stopped]
    assert order == ["controller-3"] * 2 + ["bridge-2"] * 2 + ["emulator-1"] * 2


def test_restarted_processes_keep_their_turn_and_observers_are_last(launch, tmp_path):
    once = f"[ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; exit 1; }}; {WAIT}"
    runner = launch(
        shell(WAIT, name="emulator"),
        shell(once, name="bridge", respawn="true", respawn_delay="0"),
        program(tmp_path / "web_bridge", WAIT),
        shell(WAIT, name="controller"),
    )
    for label in ("emulator-1", "bridge-2", "web_bridge-3", "controller-4"):
        runner.wait_for_line(rf"\[{label}\] ready")
    runner.send(signal.SIGINT)
    assert runner.wait() == 130
    order = [re.search(r"\[(\w+)-\d\] neutral", line)[1] for line in runner.lines if "] neutral" in line]
    assert order == ["controller", "bridge", "emulator", "web_bridge"]


def test_failed_processes_are_listed_again_at_the_end(launch):
    fails = "echo port taken >&2; exit 2"
    runner = launch(shell(WAIT, name="waits"), shell(fails, name="emulator"))
    runner.wait_for_line(r"\[waits-1\] ready")
    runner.wait_for_line(r"\[launch\] emulator-2 failed")
    assert runner.stop(signal.SIGINT) == 130
    assert re.fullmatch(r"\[launch\] emulator-2 .* 2: port taken", runner.lines[-1])


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


def test_a_second_signal_shortens_the_shutdown(launch):
    runner = launch(shell(STUBBORN, name="stubborn"))
    runner.wait_for_line("ready")
    for answer in ("SIGINT received", "gets SIGTERM", "gets SIGKILL"):
        runner.send(signal.SIGINT)
        runner.wait_for_line(answer)
    assert runner.wait() == 130


def test_a_third_signal_kills_no_bridge_that_is_suspended(launch, tmp_path):
    bridge = tmp_path / "kestrel_bridge"
    bridge.write_text(f"#!/bin/bash\n{WAIT.replace(' INT', ' INT TERM')}\n")
    bridge.chmod(0o755)
    runner = launch(f"<executable cmd='{bridge}' name='bridge'/>", shell(STUBBORN, name="controller"))
    for label in ("bridge-1", "controller-2"):
        runner.wait_for_line(rf"\[{label}\] ready")
    suspended = pid_of(runner, "bridge-1")
    os.kill(suspended, signal.SIGSTOP)
    for answer in ("SIGINT received", "bridge-1 has not stopped, and gets SIGTERM", "controller-2 was ended by"):
        runner.send(signal.SIGINT)
        runner.wait_for_line(answer)
    os.kill(suspended, signal.SIGCONT)
    assert runner.wait() == 130
    assert "[bridge-1] neutral" in runner.lines
    assert runner.count_lines("bridge-1 has not stopped, and gets SIGKILL") == 0


def test_a_bridge_that_never_stops_is_killed(launch, tmp_path):
    bridge = tmp_path / "kestrel_bridge"
    bridge.write_text(f"#!/bin/bash\n{STUBBORN}\n")
    bridge.chmod(0o755)
    runner = launch(f"<executable cmd='{bridge}' name='bridge'/>", runner=[COMMAND])
    runner.wait_for_line("ready")
    runner.send(signal.SIGINT)
    assert runner.wait() == 130
    runner.wait_for_line("bridge-1 has not stopped, and gets SIGKILL")


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


def test_respawn(launch, tmp_path):
    script = f"echo x >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) -lt 3 ] || {{ echo third; sleep 1004; }}; exit 1"
    escaped = script.replace("$(", r"\$(")
    runner = launch(shell(escaped, name="again", respawn="true", respawn_delay="0.05"))
    runner.wait_for_line(r"\[again-1\] third")
    runner.send(signal.SIGINT)
    assert runner.wait() == 130
    assert (tmp_path / "runs").read_text() == "x\n" * 3


def test_a_process_that_refuses_its_settings_is_not_restarted(launch, tmp_path):
    script = f"echo x >> {tmp_path}/runs; exit 2"
    runner = launch(shell(script, name="refused", respawn="true", respawn_delay="0"))
    assert runner.wait() == 1
    assert (tmp_path / "runs").read_text() == "x\n"


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


def test_each_process_has_its_environment(launch):
    runner = launch('<set_env name="LAUNCH_TEST" value="set"/>', shell("echo [$LAUNCH_TEST]", name="a"))
    assert runner.wait() == 0
    assert "[a-1] [set]" in runner.lines


def test_program_that_cannot_be_run(launch, tmp_path):
    program = tmp_path / "no_program"
    program.write_bytes(b"\x00\x01")
    program.chmod(0o755)
    runner = launch(f'<executable cmd="{program} --ends-launch"/>', shell(WAIT, name="later"))
    assert runner.wait() == 126
    runner.wait_for_line("no_program-1 cannot be started: .*Exec format error")
    assert "later-2 started" not in runner.output


def test_a_process_that_can_t_be_restarted_at_once_is_restarted_later(launch, tmp_path):
    path = tmp_path / "some_bridge"
    element = program(path, f"[ -e {tmp_path}/ran ] && echo back && exit 2; touch {tmp_path}/ran; mv {path} {path}.off")
    runner = launch(element.replace("/>", " respawn='true' respawn_delay='0.1'/>"), shell(WAIT, name="waits"))
    runner.wait_for_line(r"\[launch\] some_bridge-1 cannot be started: ")
    os.rename(f"{path}.off", path)
    runner.wait_for_line(r"\[some_bridge-1\] back")


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


def test_closed_screen_ends_the_run(launch_file):
    command = [COMMAND, "launch", launch_file("<executable cmd='yes' name='flood'/>")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as runner:
        assert runner.stdout.readline() == "[flood-1] y\n"
        runner.stdout.close()
        assert runner.wait(PATIENCE_S) == 128 + signal.SIGPIPE
        assert "the output is closed: stopping everything" in runner.stderr.read()


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


def test_ctrl_z_suspends_nothing_and_holds_the_bridges_of_a_launch(launch, tmp_path):
    names = "--ros-args -r __node:=hawk -r __ns:=/a --params-file x -r __ns:=/b"
    elements = [program(tmp_path / name, WAIT) for name in ("web_bridge", "kestrel_bridge", "some_controller")]
    runner = launch(*elements, f"<executable cmd='{tmp_path}/kestrel_bridge {names}' name='x'/>")
    for label in ("web_bridge-1", "kestrel_bridge-2", "some_controller-3", "x-4"):
        runner.wait_for_line(rf"\[{label}\] ready")
    ids = set()
    for number in (1, 2):
        runner.send(signal.SIGTSTP)
        wait_until(lambda: runner.count_lines("Ctrl-Z suspends nothing, and holds") == number, "its sentence")  # noqa: B023
        wishes = WishFiles(domain_of(os.environ)).read()
        assert {wish.name for wish in wishes} == {"/kestrel_bridge", "/a/hawk"}
        assert ids < (ids := ids | {wish.id for wish in wishes})
    runner.send(signal.SIGINT)
    assert runner.wait() == 130


@pytest.mark.parametrize("words", [["launch", "--show-args", "testbed.launch.xml"], ["launch", "--help"], ["--help"]])
def test_a_closed_output_pipe_is_no_error(words):
    reading, writing = os.pipe()
    os.close(reading)
    command = [COMMAND, *words]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    os.close(writing)
    assert done.returncode in (128 + signal.SIGPIPE, 0)  # argparse does not report its own broken pipe
    assert done.stderr == ""
