# SPDX-License-Identifier: Apache-2.0
"""drone-bridge check: ask one protocol's codec, bridge and server the questions of the conformance suite."""

import argparse
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ament_index_python.packages import get_package_share_directory

from drone_bridge.kind import kinds
from drone_bridge.programs.options import known

#: Where the questions are, in the package's share folder.
FOLDER = "conformance"
#: All of them took 6 minutes for telemetry, in both roles, on two busy cores. One that waits in vain fails after one.
LIMIT_S = 1800.0
GRACE_S = 60.0  # for those that are stopped, to end what they have started


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the questions about one protocol; return pytest's exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge check",
        description="Ask a protocol, of this package or of another installed one, whether its messages survive, and "
        "whether its bridge and server stop their vehicle whatever happens. Starts emulators, on this machine only.",
    )
    parser.add_argument("protocol", type=known(kinds()), help=f"one of: {', '.join(kinds())}")
    parser.add_argument("-k", dest="only", metavar="WORDS", help="only questions with these words, as pytest has it")
    options = parser.parse_args(arguments)
    for package in ("pytest", "hypothesis"):  # of the extra; what lacks is said here, and not by the other process
        importlib.import_module(package)
    folder = Path(get_package_share_directory("drone_bridge"), FOLDER)
    paths = [str(folder / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "pytest", str(folder), "-p", "alone", "-p", "no:cacheprovider", "-v"]
    command += ["--import-mode=importlib", f"--rootdir={folder}", f"--confcutdir={folder}", "-c", os.devnull]
    command += ["-W", "ignore::DeprecationWarning"]  # of packages that rclpy needs
    command += [f"--protocol={options.protocol}", *(["-k", options.only] if options.only else [])]
    asking = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    try:
        return asking.wait(LIMIT_S)
    except KeyboardInterrupt:
        return asking.wait()
    except subprocess.TimeoutExpired:
        asking.send_signal(signal.SIGINT)
        asking.wait(GRACE_S)
        print(f"The questions about {options.protocol} were not answered within {LIMIT_S:g} s.", file=sys.stderr)
        return 1
    finally:
        if asking.poll() is None:
            asking.kill()
