# SPDX-License-Identifier: Apache-2.0
"""An entry of the tests: what hangs ends, what it has started ends with it, and only a lock-up is asked again."""

import os
import signal
import subprocess
import sys
import textwrap

import entry
import mutants
import pytest
from processes import has_ended
from repository import TESTS
from ros_session import wait_until

#: Limit of a test that stands still; the interpreter and pytest start within it on a busy machine as well.
LIMIT_S = 15
#: Like Fast DDS's lock-up: the call never returns, and Python's lock is not given back.
LOCKS_UP = "import ctypes; ctypes.PyDLL(None).pause()"


@pytest.fixture
def run_entry(tmp_path):
    """run_entry(text, limit_s) runs an entry with one test file; returns it, ended, with what it has printed."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n")

    def start(text, limit_s=10 * LIMIT_S):
        (project / "test_it.py").write_text(textwrap.dedent(text))
        words = (tmp_path / "out" / "it.txt", limit_s, tmp_path / "it.xml", project / "test_it.py")
        return subprocess.run(
            [sys.executable, entry.__file__, *map(str, words)],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=20 * LIMIT_S,
            check=False,
            env={name: value for name, value in os.environ.items() if name != entry.place.VARIABLE},
        )

    return start


def test_a_test_that_keeps_pythons_lock_is_dumped_and_ends(run_entry):
    done = run_entry(f"def test_it():\n    {LOCKS_UP}\n", LIMIT_S)
    assert done.returncode != 0
    assert "in test_it" in done.stdout
    assert "asked once more" not in done.stdout


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


def test_mutants_are_tested_and_signed_by_what_there_is():
    missing = [name for names in mutants.NEAREST.values() for name in names if not (TESTS / name).exists()]
    lines = [(function.split()[0], line) for function, line, _ in mutants.SURVIVORS]
    gone = [line for module, line in lines if line not in (mutants.PACKAGE / f"{module}.py").read_text()]
    assert (missing, gone) == ([], [])
