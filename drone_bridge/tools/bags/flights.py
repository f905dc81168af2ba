# SPDX-License-Identifier: Apache-2.0
"""drone-bridge flights: the last flights, of which launch files keep bags without images, the newest last.

flights:=false for a launch file, or DRONE_BRIDGE_FLIGHTS=false in the environment, keeps none.
"""

import argparse
import fcntl
import os
import sys
from collections.abc import Sequence
from pathlib import Path

MIB = 2**20
#: Pictures and the like: they have no place in a table, nor in a log of every flight.
BULKY_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/PointCloud2")


def flights_folder() -> Path:
    """Return where flights are kept: $ROS_HOME/flights, by default ~/.ros/flights."""
    return Path(os.environ.get("ROS_HOME") or Path.home() / ".ros", "flights")


def hold(flight: Path) -> int:
    """Mark a bag as being written, for as long as the descriptor that is returned is open. Raises OSError."""
    descriptor = os.open(flight, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def held_by_recorder(flight: Path) -> bool:
    """Return whether a bag is being written: it ends with the recorder, however that ends."""
    try:
        descriptor = os.open(flight, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # removed just now, by another recorder
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def size_of(flight: Path) -> int:
    """Return the size of its files, bytes."""
    return sum(file.stat().st_size for file in flight.glob("*") if file.is_file())


def main(argv: Sequence[str]) -> int:
    """Print a line per flight; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge flights", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=flights_folder(), help="(%(default)s)")
    folder = parser.parse_args(argv).folder
    flights = sorted(path for path in folder.glob("*") if path.is_dir()) if folder.is_dir() else []
    if not flights:
        print(f"There are no flights in '{folder}'.", file=sys.stderr)
        return 1
    for flight in flights:
        print(f"{flight}  {size_of(flight) / MIB:7.1f} MiB  {_described(flight)}")
    return 0


def _described(flight: Path) -> str:
    from drone_bridge.tools.bags.bag import NANOSECONDS_PER_SECOND, Bag, BagError

    if held_by_recorder(flight):
        return "is being recorded"
    try:
        with Bag(flight) as bag:
            spaces = sorted({topic.name.rpartition("/")[0] or "/" for topic in bag.topics})
            duration_s = (bag.end_ns - bag.start_ns) / NANOSECONDS_PER_SECOND
            return f"{duration_s:7.1f} s  {bag.count:7} messages  {' '.join(spaces)}"
    except BagError as error:
        return str(error)
