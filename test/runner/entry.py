# SPDX-License-Identifier: Apache-2.0
"""Run one entry of the tests: pytest with separate ports, ROS domains and folders, and without remaining processes.

    entry.py [--all] OUTPUT SECONDS RESULT FILE [FILE ...]

pytest's output is written to the file OUTPUT, and copied to standard output at the end. Its JUnit results are written
to RESULT. Tests marked as exhaustive are left out without `--all`. After TEST_LIMIT_S, a test's stacks are dumped by
the C library, without Python's lock, and pytest is ended (if it supports `faulthandler_exit_on_timeout`). After
SECONDS, the entry gets SIGABRT, with the same dump. This process adopts orphaned descendants, and ends all of them
before it frees ports and ROS domains. Only a lock-up of the middleware is retried, once.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from descendants import end_descendants, parent_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance" / "support"))
import place

TEST_LIMIT_S = 300
#: Period of polling for the timeout, and for the end of ctest.
LOOK_PERIOD_S = 1.0
#: Time from SIGABRT to SIGKILL.
DUMP_S = 10.0
#: Maximum number in one run of all tests. More of them indicate another fault.
MAX_LOCK_UPS = 2
LOCK_UPS = "lock-ups"

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NO_TESTS_COLLECTED = 5

#: Innermost Python frame of a thread in faulthandler's dump.
INNERMOST_FRAME = re.compile(r'\(most recent call first\):\n\s+File "([^"]*)", line \d+ in (\S+)')


def is_lock_up(output: str) -> bool:
    """Return whether a dump in the output shows Fast DDS's lock-up (its issue 6502).

    rclpy creates and destroys endpoints while it holds Python's lock; where Fast DDS locks up in there, as the news of
    another's beginning or end comes in, the whole interpreter stands still, and the innermost frame of that thread is
    rclpy's function that creates or destroys.
    """
    return any(
        "rclpy" in Path(path).parts
        and (function.startswith(("create_", "destroy")) or function in ("shutdown", "try_shutdown"))
        for path, function in INNERMOST_FRAME.findall(output)
    )


def claim_lock_up(folder: Path) -> bool:
    """Return whether one more lock-up is allowed in this run of all tests, and count it."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(MAX_LOCK_UPS):
        with contextlib.suppress(FileExistsError):
            (folder / f"{ctest_pid()}-{number}").touch(exist_ok=False)
            return True
    return False


def ctest_pid() -> int:
    """Return the process of ctest, which runs ament's run_test.py, which runs this."""
    return parent_of(os.getppid())


def run_pytest(arguments: list[str], folder: Path, output: Path, limit_s: float) -> int:
    """Run pytest with its output in a file, and end its remaining processes. Return its exit status."""
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    if coverage := os.environ.get("DRONE_BRIDGE_COVERAGE"):
        environment["COVERAGE_FILE"] = str(Path(coverage, f"{output.stem}.coverage"))
    with output.open("wb") as file:
        child = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        until_s, ctest = time.monotonic() + limit_s, ctest_pid()
        while (status := child.poll()) is None and time.monotonic() < until_s and ctest_pid() == ctest:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(LOOK_PERIOD_S)
        if status is None:
            reason = f"not ended within {limit_s:.0f} s" if ctest_pid() == ctest else "lost ctest, which was ended"
            print(f"The entry has {reason}.", file=sys.stderr)
            child.send_signal(signal.SIGABRT)  # pytest's faulthandler dumps the stacks
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(DUMP_S)
            child.kill()
            status = child.wait() or 1
    left = end_descendants()
    with output.open("a") as file:
        file.writelines(f"\nLeft running, and ended: {command}" for command in left)
    return status


def main() -> int:
    """Run the entry, and retry it once after a lock-up of the middleware."""
    is_all = "--all" in sys.argv
    output, limit_s, result, *files = [word for word in sys.argv[1:] if word != "--all"]
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # A shell's background job ignores it, and so would pytest and all that tests start and then interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    place.number()
    arguments = [*files, "-q", "-p", "no:rerunfailures", "-p", "no:cacheprovider", f"--junit-xml={result}"]
    arguments += ["--hypothesis-profile=exhaustive"] if is_all else ["-m", "not exhaustive"]
    arguments += ["-o", f"faulthandler_timeout={TEST_LIMIT_S}"]
    if pytest.version_tuple >= (9,):
        arguments += ["-o", "faulthandler_exit_on_timeout=true"]
    if os.environ.get("DRONE_BRIDGE_COVERAGE"):
        arguments += ["--cov", "--cov-report="]
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="entry-"))
    try:
        status = run_pytest(arguments, folder, path, float(limit_s))
        text = path.read_text(errors="replace")
        if status and is_lock_up(text) and claim_lock_up(path.parent / LOCK_UPS):
            print(text, "\nThe middleware has locked up (Fast DDS issue 6502): asked once more.\n", sep="\n")
            status = run_pytest(arguments, folder, path, float(limit_s))
    finally:
        end_descendants()
        shutil.rmtree(folder, ignore_errors=True)
    print(path.read_text(errors="replace"))
    return 0 if status == NO_TESTS_COLLECTED else status


if __name__ == "__main__":
    sys.exit(main())
