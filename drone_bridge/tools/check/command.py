# SPDX-License-Identifier: Apache-2.0
"""drone-bridge check: run the conformance suite for one protocol's codec, bridge and server."""

import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory

from drone_bridge.kind import ProtocolKind, kinds, load, unloadable
from drone_bridge.programs.options import known
from drone_bridge.tools.command_parser import CommandParser

#: Folder of the tests in the package's share folder.
FOLDER = "conformance"
#: Tests by default: those of the gate, with all promises that depend on the protocol's transport.
DEFAULT = "not exhaustive"
#: Limit of the search without processes, s of CPU time, as a loaded machine is no fault of a class; and one of waiting.
FAULTS_S, WAITS_S = 40, 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests of one protocol. Return pytest's exit status."""
    parser = CommandParser(
        prog="drone-bridge check",
        description="Test a protocol or a robot in one class: messages must survive encoding, and "
        "bridge and server must stop their vehicle after any fault. Starts emulators, on this machine only.",
    )
    parser.add_argument("protocol", type=known(kinds(), unloadable()), help=f"one of: {', '.join(kinds())}")
    parser.add_argument("-k", dest="only", metavar="WORDS", help="only tests with these words, as in pytest")
    parser.add_argument(
        "-m",
        dest="markers",
        metavar="MARKERS",
        default=DEFAULT,
        help=f"only tests with these markers, as in pytest: every_kind, by_mechanism, exhaustive, or '' for all "
        f"(by default: {DEFAULT})",
    )
    options = parser.parse_args(arguments)
    for package in ("pytest", "hypothesis"):  # of the extra; a missing one is reported here
        importlib.import_module(package)
    if found := _faults(kinds()[options.protocol]):
        print(*(f"FAILED {sentence}" for sentence in found), "Further tests were not run.", sep="\n")
        return 1
    folder = Path(get_package_share_directory("drone_bridge"), FOLDER)
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = [str(folder / "support"), *map(os.path.abspath, given)]
    # The tests end with this program, whatever ends it, and their programs with them (`processes.py` of the suite).
    command = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    command += [sys.executable, "-m", "pytest", str(folder), "-p", "alone", "-p", "no:cacheprovider", "-v"]
    command += ["--import-mode=importlib", f"--rootdir={folder}", f"--confcutdir={folder}", "-c", os.devnull]
    command += ["-W", "ignore::DeprecationWarning"]  # of packages that rclpy needs
    command += [
        f"--protocol={options.protocol}",
        "-m",
        options.markers,
        *(["-k", options.only] if options.only else []),
    ]
    # Python imports from the current folder first, where a robot's folder hides the installed module of the same name.
    tests = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    try:
        return tests.wait()  # each test times out after a minute
    except KeyboardInterrupt:
        return tests.wait()


def _faults(kind: ProtocolKind) -> list[str]:
    """Return the faults of a description that are found without processes, within FAULTS_S and WAITS_S."""
    if not kind.faults:
        return []

    def interrupt(*_: Any) -> None:
        raise TimeoutError(f"it has not returned after {FAULTS_S} s of computing, or {WAITS_S} s")

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, FAULTS_S)
    signal.alarm(WAITS_S)
    try:
        return list(load(kind.faults)())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)
