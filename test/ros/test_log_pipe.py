# SPDX-License-Identifier: Apache-2.0
"""A node's output through the log pipe: it never blocks the node, and dropped lines are counted."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading

import pytest
from blocked_output import full_pipe
from processes import TIMEOUT_S, executable
from ros_session import wait_until

from drone_bridge.ros.process import watchdog
from drone_bridge.ros.process.log_writer import QUEUE_LIMIT, Sink, open_log_file

LINES = 40_000  # of 100 bytes: more than a pipe and a queue hold


def program(text):
    """Return the command of a program that has the log pipe from its first line on."""
    begin = (
        "import os, signal, subprocess, sys, time\nfrom drone_bridge.ros.process import log_pipe\nlog_pipe.start()\n"
    )
    return [sys.executable, "-c", begin + textwrap.dedent(text)]


@contextlib.contextmanager
def started(command, **options):
    """Start a process that is killed with a failed test."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def run(text, **options):
    return subprocess.run(program(text), capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **options)


def test_output_and_errors_go_where_they_went_before(tmp_path):
    done = run("print('out'); print('err', file=sys.stderr); os.write(1, b'written')", env=logging_to(tmp_path))
    assert (done.stdout, done.stderr, done.returncode) == ("out\nwritten", "err\n", 0)


def test_a_traceback_and_a_status_are_those_of_a_program_without_it(tmp_path):
    done = run("raise SystemExit(3)", env=logging_to(tmp_path))
    assert (done.stderr, done.returncode) == ("", 3)
    done = run("raise KeyError('of ours')", env=logging_to(tmp_path))
    assert done.stderr.endswith("KeyError: 'of ours'\n")
    assert done.returncode == 1


def test_blocked_output_delays_nothing_and_shows_its_tail_once_unblocked(tmp_path):
    """The program exits while its output is not read. The first lines, a count of dropped ones, and the last remain."""
    text = f"""
        import fcntl, termios
        for number in range({LINES}):
            while not number % 100 and any(fcntl.ioctl(1, termios.FIONREAD, bytes(4))):
                time.sleep(0.001)  # until the log writer has had its turn: nothing is lost in the pipe
            print(str(number).zfill(99))
    """
    with started(program(text), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=logging_to(tmp_path)) as it:
        assert it.wait(TIMEOUT_S) == 0
        lines = it.stdout.read().decode().splitlines()
    assert lines[0] == "0".zfill(99)
    assert lines[-1] == str(LINES - 1).zfill(99)
    counts = [int(found[1]) for line in lines if (found := re.search(r"Dropped (\d+) lines", line))]
    assert counts
    assert len(lines) - len(counts) + sum(counts) == LINES


def test_a_print_to_an_output_that_takes_nothing_raises_nothing(tmp_path):
    """The program prints faster than the log writer, which is stopped, and then killed."""
    text = """
        pid = log_pipe._PIPE.writer_pid
        for number in (signal.SIGSTOP, signal.SIGKILL):
            os.kill(pid, number)
            for _ in range(100):
                print("x" * 100_000)
                print("y" * 100_000, file=sys.stderr)
        os.waitpid(pid, 0)
        open(sys.argv[1], "w").close()
    """
    done = subprocess.run([*program(text), tmp_path / "done"], timeout=TIMEOUT_S, check=False, env=logging_to(tmp_path))
    assert done.returncode == 0
    assert (tmp_path / "done").exists()


def test_children_have_the_output_that_the_program_was_started_with(tmp_path):
    text = """
        out, err = log_pipe.original_output()
        subprocess.run(["sh", "-c", "echo child; sleep 0; test -w /dev/stdout"], stdout=out, stderr=err, check=True)
    """
    done = run(text, env=logging_to(tmp_path))
    assert (done.stdout, done.stderr) == ("child\n", "")


def test_signals_to_the_group_of_a_node_leave_its_log_writer_alone(tmp_path):
    """Like a Ctrl-C at a terminal, which reaches all processes."""
    text = """
        signal.signal(signal.SIGINT, lambda *_: print("interrupted"))
        print("ready")
        signal.pause()
        print("last")
    """
    with started(
        program(text),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=logging_to(tmp_path),
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == b"interrupted\nlast\n"
        assert process.wait(TIMEOUT_S) == 0


def logging_to(folder):
    """Return an environment with log files below a folder."""
    return {**os.environ, "ROS_LOG_DIR": str(folder / "log")}


def test_the_log_file_has_both(tmp_path):
    run("print('out'); print('err', file=sys.stderr)", env=logging_to(tmp_path))
    (file,) = (tmp_path / "log").iterdir()
    assert sorted(file.read_text().splitlines()) == ["err", "out"]


@pytest.mark.parametrize("flag", ["--disable-external-lib-logs", "--enable-external-lib-logs"])
def test_who_wants_no_log_file_or_that_of_rcl_has_none_of_ours(tmp_path, flag):
    command = [*program("print('out')"), "--ros-args", flag]
    subprocess.run(command, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True, env=logging_to(tmp_path))
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("variable", ["ROS_LOG_DIR", "ROS_HOME", "HOME"])
def test_a_log_folder_that_cannot_be_made_ends_no_node(start_child, domain, variable):
    unset = [word for name in ("ROS_LOG_DIR", "ROS_HOME") for word in ("-u", name)]
    node = start_child("env", *unset, f"{variable}=/dev/null/log", executable("vehicle_model"))
    node.wait_for_line("Publishing the model")
    node.wait_for_line("No log file")
    assert node.stop() == 0
    assert node.count_lines("No log file") == 1


HELD = """
    import ctypes, sys
    from rclpy.node import Node
    from drone_bridge.ros.node import program
    from drone_bridge.ros.process import watchdog

    watchdog.LIMIT_S, watchdog.PERIOD_S = 2.0, 0.3

    class HeldNode(Node):
        def start(self):
            for _ in range(1000):
                self.get_logger().info("x" * 1000)
            self.create_timer(1.0, lambda: ctypes.PyDLL(None).sleep(600))  # keeps Python's lock
            return True

        def leave(self):
            pass

    sys.exit(program.run(lambda: HeldNode("held")))
"""


def test_held_interpreter_with_blocked_output_ends_and_shows_its_traceback(tmp_path, monkeypatch):
    monkeypatch.delenv(watchdog.SECONDS)
    reading, writing = full_pipe()
    command = [sys.executable, "-c", textwrap.dedent(HELD)]
    with started(command, stdout=writing, stderr=writing, env=logging_to(tmp_path)) as held:
        os.close(writing)
        assert held.wait(TIMEOUT_S) == -signal.SIGALRM
    with open(reading, "rb") as output:
        assert b"Current thread" in output.read()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_node_whose_standard_files_are_closed_works_as_with_dev_null(start_child, ros, domain, closed, tmp_path):
    """None of them is a socket of DDS, or another file."""
    pid_file = tmp_path / "pid"
    script = f'echo $$ > {pid_file}; exec "$@" {closed}'
    log = logging_to(tmp_path)
    node = start_child("sh", "-c", script, "sh", executable("vehicle_model"), env=log)
    logged = lambda: any("Publishing" in file.read_text() for file in (tmp_path / "log").glob("*"))  # noqa: E731
    wait_until(logged, "the node's log file")
    files = [os.readlink(f"/proc/{pid_file.read_text().strip()}/fd/{number}") for number in range(3)]
    assert not any(file.startswith("socket") for file in files), files
    assert files[0] == os.devnull
    assert all(file.startswith("pipe") for file in files[1:]), files
    assert node.stop() == 0


@pytest.mark.parametrize(
    ("words", "closed"),
    [
        *((("launch", "FILE"), closed) for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-")),
        (("emulate", "robot", "--port", "PORT", "--no-discovery"), "<&- >&- 2>&-"),
        (("doctor",), "<&- >&- 2>&-"),
    ],
)
def test_a_program_whose_standard_files_are_closed_works_as_with_dev_null(tmp_path, domain, free_port, words, closed):
    touched = tmp_path / "touched"
    launch_file = tmp_path / "touch.launch.xml"
    launch_file.write_text(f"<launch><executable cmd=\"sh -c 'echo on; echo ho >&amp;2; touch {touched}'\"/></launch>")
    words = [{"FILE": str(launch_file), "PORT": str(free_port)}.get(word, word) for word in words]
    script = f'exec "$@" {closed}'
    command = ["sh", "-c", script, "sh", executable("drone-bridge"), *words]
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        if words[0] == "emulate":
            wait_until(lambda: listens(free_port), "the emulator's port")
            process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    assert touched.exists() == (words[0] == "launch")


def listens(port):
    """Return whether a port is open."""
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


# The sink alone.


def test_the_oldest_lines_are_dropped_and_counted_while_an_output_blocks():
    reading, writing = full_pipe()
    sink = Sink(lambda: writing, lambda _: None)
    line = b"x" * 1023 + b"\n"
    sink.put(b"first\n")
    wait_until(lambda: sink._in_hand, "the first line to be in hand")
    count = 2 * QUEUE_LIMIT // len(line)
    for _ in range(count):
        sink.put(line)
    sink.put(b"last\n")
    read = []
    with open(reading, "rb") as output:
        reader = threading.Thread(target=lambda: read.extend(output))
        reader.start()
        sink.finish(TIMEOUT_S)
        os.close(writing)
        reader.join()
    assert read[0].endswith(b"first\n")
    assert read[-1] == b"last\n"
    dropped = int(re.search(rb"Dropped (\d+) lines", read[1])[1])
    assert dropped + sum(each == line for each in read) == count


def test_a_log_file_ends_at_its_maximum_size_with_a_line(tmp_path):
    failures = []
    sink = Sink(lambda: open_log_file(str(tmp_path / "log")), failures.append, 2 * QUEUE_LIMIT)
    for _ in range(5):
        sink.put(b"x" * (QUEUE_LIMIT - 1) + b"\n")
        sink.finish(TIMEOUT_S)
    data = (tmp_path / "log").read_bytes()
    assert 2 * QUEUE_LIMIT < len(data) < 2 * QUEUE_LIMIT + 100
    assert data.endswith(b"at its maximum size.\n")
    assert not failures


def test_output_closed_by_its_reader_is_reported_once_and_takes_nothing():
    reading, writing = os.pipe()
    os.close(reading)
    failures = []
    sink = Sink(lambda: writing, failures.append)
    sink.put(b"1\n")
    wait_until(lambda: failures, "the failure")
    for _ in range(10):
        sink.put(b"2\n")
    sink.finish(TIMEOUT_S)
    assert [type(each) for each in failures] == [BrokenPipeError]
    os.close(writing)
