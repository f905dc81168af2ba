# SPDX-License-Identifier: Apache-2.0
"""What the log of the last flights costs, for each launch file with a controller: python benchmark/flights.py."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from children import cpu_s

from drone_bridge.kind import kinds
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of

SETTLE_S = 8.0
MOST = 0.03  # of a core


def main() -> int:
    """Print a line for each; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each is measured (%(default)s)")
    seconds = parser.parse_args().seconds
    worst = 0.0
    for kind in kinds().values():
        isolate_ros_graph()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ROS_HOME"] = folder
            ports = {port: free_port() for port in ports_of(kind.launch_file)}
            arguments = {"emulate": True, "control": True, "flights": True, **ports}
            composition = Composition(kind.launch_file, Path(folder, "log.txt"), **arguments)
            try:
                time.sleep(SETTLE_S)
                recorder = _recorder_of(folder)
                before, began = cpu_s(recorder), time.monotonic()
                time.sleep(seconds)
                share = (cpu_s(recorder) - before) / (time.monotonic() - began)
            finally:
                composition.stop()
        worst = max(worst, share)
        print(f"{kind.launch_file:24} {share:6.1%} of a core", flush=True)
    return int(worst > MOST)


def _recorder_of(folder: str) -> int:
    """Return the process of the recorder that has this folder for its home."""
    for process in Path("/proc").glob("[0-9]*"):
        words = (process / "cmdline").read_bytes().split(b"\0")
        if b"__node:=flight_recorder" in words and f"ROS_HOME={folder}".encode() in (process / "environ").read_bytes():
            return int(process.name)
    raise ChildProcessError("There is no flight recorder.")


if __name__ == "__main__":
    sys.exit(main())
