# SPDX-License-Identifier: Apache-2.0
"""An entry of the tests: what hangs ends, what it has started ends with it, and only a lock-up is asked again."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import entries
import entry
import pytest
import run
from ros_session import wait_until

#: Of a test that stands still; the interpreter and pytest start within it on a busy machine as well.
LIMIT_S = 15
#: Like Fast DDS's lock-up: the call never returns, and Python's lock is not given back.
LOCKS_UP = "import ctypes; ctypes.PyDLL(None).pause()"
DUMP = """\
Timeout (0:05:00)!
Thread 0x00007f51f0ff96c0 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 355 in wait
  File "{path}", line 10 in spin

Current thread 0x00007f5262b3a080 (most recent call first):
  File "{path}", line 77 in {function}
  File "test/test_hold.py", line 20 in test_hold
"""


@pytest.mark.parametrize(
    ("path", "function", "is_one"),
    [
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/subscription.py", "destroy", True),
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/node.py", "destroy_node", True),
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/context.py", "shutdown", True),
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/executors.py", "_wait_for_ready_callbacks", False),
        ("/opt/ros/kilted/drone_bridge/net/tcp.py", "destroy", False),
    ],
)
def test_a_lock_up_is_known_by_the_innermost_frame(path, function, is_one):
    assert entry.is_lock_up(DUMP.format(path=path, function=function)) is is_one


def test_a_failure_without_a_dump_is_no_lock_up():
    assert not entry.is_lock_up("rclpy/node.py:2071: in destroy_node\nE  AssertionError: destroy")


def test_every_file_with_tests_is_in_one_entry(capsys):
    entries.main()
    lines = capsys.readouterr().out.splitlines()
    files = [Path(file) for line in lines for file in line.split()[3:]]
    assert sorted(files) == entries.test_files()
    names = [line.split()[0] for line in lines]
    assert len(set(names)) == len(names)


def test_the_counts_are_those_of_the_results(tmp_path):
    result = tmp_path / "entry.xunit.xml"
    result.write_text('<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>')
    assert run.counts_in(result, has_passed=False) == run.Counts(passed=3, failed=3, skipped=3)
    assert run.counts_in(tmp_path / "none.xml", has_passed=False) == run.Counts(failed=1)


@pytest.fixture
def run_entry(tmp_path):
    """run_entry(text) runs an entry with one test file; returns it, ended, with what it has printed."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n")

    def start(text):
        (project / "test_it.py").write_text(textwrap.dedent(text))
        words = (tmp_path / "out" / "it.txt", LIMIT_S, tmp_path / "it.xml", project / "test_it.py")
        return subprocess.run(
            [sys.executable, entry.__file__, *map(str, words)],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=10 * LIMIT_S,
            check=False,
            env={name: value for name, value in os.environ.items() if name != entry.place.VARIABLE},
        )

    return start


def has_ended(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def test_a_test_that_keeps_pythons_lock_is_dumped_and_ends(run_entry):
    done = run_entry(f"def test_it():\n    {LOCKS_UP}\n")
    assert done.returncode != 0
    assert "in test_it" in done.stdout
    assert "asked once more" not in done.stdout


def test_a_lock_up_of_the_middleware_is_asked_once_more(run_entry, tmp_path):
    library = tmp_path / "rclpy"
    library.mkdir()
    (library / "subscription.py").write_text(f"def destroy():\n    {LOCKS_UP}\n")
    test = f"""
        import pathlib, runpy
        def test_it():
            first = pathlib.Path({str(tmp_path)!r}, "first")
            if not first.exists():
                first.touch()
                runpy.run_path({str(library / "subscription.py")!r})["destroy"]()
    """
    done = run_entry(test)
    assert done.returncode == 0, done.stdout
    assert "asked once more" in done.stdout
    assert len(list((tmp_path / "out" / entry.LOCK_UPS).iterdir())) == 1


def test_what_a_test_leaves_running_ends_with_its_entry(run_entry, tmp_path):
    told = tmp_path / "pid"
    child = f"import pathlib, os, time; pathlib.Path({str(told)!r}).write_text(str(os.getpid())); time.sleep(600)"
    done = run_entry(f"""
        import pathlib, subprocess, sys, time
        def test_it():
            script = {f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])"!r}
            subprocess.run([sys.executable, "-c", script], start_new_session=True)
            while not pathlib.Path({str(told)!r}).exists():
                time.sleep(0.01)
    """)
    assert done.returncode == 0, done.stdout
    assert "Left running, and ended: " in done.stdout
    assert has_ended(int(told.read_text()))


def test_an_entry_whose_ctest_is_killed_leaves_nothing(tmp_path):
    told = tmp_path / "pid"
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        f"import pathlib, os, time\n"
        f"def test_it():\n    pathlib.Path({str(told)!r}).write_text(str(os.getpid()))\n    time.sleep(600)\n"
    )
    words = [entry.__file__, tmp_path / "out" / "it.txt", 600, tmp_path / "it.xml", tmp_path / "test_it.py"]
    run_test = f"import subprocess; subprocess.run({[sys.executable, *map(str, words)]!r}, cwd={str(tmp_path)!r})"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {run_test!r}])"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL) as ctest:
        wait_until(lambda: told.exists() and told.read_text(), "the test to run")
        ctest.send_signal(signal.SIGKILL)
    wait_until(lambda: has_ended(int(told.read_text())), "the test's end")
