# SPDX-License-Identifier: Apache-2.0
"""Flights to targets: emulator, bridge and controller for one drone or a fleet, then bag, picture and report."""

import contextlib
import random
import re
import shutil
import socket
import sys
import time
from pathlib import Path

from drone_bridge.testbed.emulator.world import World
from drone_bridge.testbed.topics import enu_from_testbed
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.picture import Flight, draw
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.demo.series import REACHED, TOUCHDOWN
from drone_bridge.tools.demo.way import read_rows
from drone_bridge.tools.reporting.command import write_report

STATUS_PERIOD_S = 0.2
#: Of wall time, after the last target was reached.
LINGER_S = 3.0
TIMEOUT_S = 180.0
TRAJECTORY = "trajectory.csv"
SEED = 222  # the target is high to the left, with obstacles in view and none in the way
OBSTACLES = 6
FIRST_SEED = 1  # of a fleet

FLEET = """\
# The drones of `drone-bridge demo fleet`; run them again with: drone-bridge fleet fleet.yaml
vehicles:
  drone[1-{drones}]:
    protocol: testbed
    port: {port}
    parameters:
      attitude_layout: pose
      sync: lockstep # each frame waits for its command, however busy the machine is
      stamp_source: wire
    emulate:
      seed: "[{first_seed}-{last_seed}]"
      trajectory: "{folder}/drone[1-{drones}].csv"
      rate: 20
      width: 160
      height: 120
      vfov: 104.8
    control: true
"""


def show_testbed(folder: Path) -> int:
    """Fly to a target, print a status line and a table, write into the folder; return the exit status."""
    _prepare(folder)
    print("A drone looks for a red sphere with its two cameras. Every frame and every command is a ROS 2 topic.")
    composition = _record(
        "testbed.launch.xml",
        folder,
        testbed_port=free_port(),
        attitude_layout="pose",
        publish_clock=True,
        testbed_seed=SEED,
        obstacles=OBSTACLES,
        testbed_image_width=320,
        testbed_image_height=240,
        vertical_angle_of_view=104.8,
        testbed_trajectory=folder / TRAJECTORY,
    )
    if not _wait(composition, REACHED, folder):
        return 1
    reached_s = float(composition.matches(REACHED)[0]["time"])
    target = enu_from_testbed(*World.random(SEED, OBSTACLES).targets[0].centre)
    flight = Flight.read("drone", "testbed", read_rows(folder / TRAJECTORY), target, reached_s)
    draw(folder / "flight.png", [flight], folder / "bag")
    after = flight.distances_m[flight.times_s > reached_s + 1]
    _print_results(
        folder,
        {
            "target at the start": f"{flight.distances_m[0]:.2f} m away",
            "reached": f"after {reached_s:.2f} s simulated, {flight.flown_m:.1f} m flown in all",
            "held": f"within {after.max():.2f} m of its centre" if after.size else "-",
            "picture": str(folder / "flight.png"),
        },
    )
    return 0


def show_landing(folder: Path) -> int:
    """Land on a rover, print a status line and a table, write into the folder; return the exit status."""
    _prepare(folder)
    print("A drone without GPS takes off, searches for a moving rover with its camera, follows it and lands on it.")
    composition = _record(
        "landing.launch.xml",
        folder,
        telemetry_port=free_port(),
        use_camera=True,
        rover_pattern="circular",
        landing_start="ground",
        landing_seed=7,
        landing_trajectory=folder / TRAJECTORY,
    )
    if not _wait(composition, TOUCHDOWN, folder):
        return 1
    touchdown = composition.matches(TOUCHDOWN)[0]
    landed_s = float(touchdown["time"])
    flight = Flight.read("drone to rover", "landing", read_rows(folder / TRAJECTORY), None, landed_s)
    draw(folder / "landing.png", [flight], folder / "bag")
    _print_results(
        folder,
        {
            "touchdown": f"after {landed_s:.1f} s, {touchdown['error']} m off the centre of the pad",
            "touchdown speed": f"{touchdown['vertical']} m/s downwards, {touchdown['relative']} m/s across the pad",
            "picture": str(folder / "landing.png"),
        },
    )
    return 0 if touchdown["verdict"] == "good" else 1


def show_fleet(folder: Path, drones: int) -> int:
    """Fly drones to their targets in one process, print a table, write into the folder; return the exit status."""
    _prepare(folder)
    file = folder / "fleet.yaml"
    last_seed = FIRST_SEED + drones - 1
    port = _free_ports(drones)
    file.write_text(
        FLEET.format(drones=drones, port=port, first_seed=FIRST_SEED, last_seed=last_seed, folder=folder.resolve())
    )
    print(
        f"{drones} drones look for their targets at the same time. All bridges and controllers are in one process.",
        flush=True,
    )
    composition = Composition("fleet.launch.xml", folder / "log.txt", fleet_file=file.resolve())
    if not _wait(composition, re.compile(rf"\[(?P<name>drone\d+) emulator\] {REACHED.pattern}"), folder, drones):
        return 1
    flights = []
    for found in composition.matches(re.compile(rf"\[(?P<name>drone(?P<number>\d+)) emulator\] {REACHED.pattern}")):
        world = World.random(FIRST_SEED + int(found["number"]) - 1)
        rows = read_rows(folder / f"{found['name']}.csv")
        target = enu_from_testbed(*world.targets[0].centre)
        flights.append(Flight.read(found["name"], "testbed", rows, target, float(found["time"])))
    draw(folder / "fleet.png", sorted(flights, key=lambda flight: flight.name))
    for flight in flights:
        print(
            f"  {flight.name:8} target {flight.distances_m[0]:5.2f} m away, reached after {flight.reached_s:5.2f} s "
            f"simulated, {flight.flown_m:5.1f} m flown"
        )
    print(f"  picture  {folder / 'fleet.png'}")
    return 0


def _prepare(folder: Path) -> None:
    """Isolate the ROS graph and empty the folder. Raises OSError where it can't be emptied or created."""
    isolate_ros_graph()
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _record(launch_file: str, folder: Path, **arguments: object) -> Composition:
    """Start emulator, bridge, controller and recorder; log and bag go to the folder."""
    common = {"emulate": True, "control": True, "record": True, "compression": "zstd", "stamp_source": "wire"}
    return Composition(launch_file, folder / "log.txt", bag=folder / "bag", **common, **arguments)


def _wait(composition: Composition, reached: re.Pattern[str], folder: Path, count: int = 1) -> bool:
    """Show the last line until the output matches so often, and some more; stop, and return whether all went well."""
    end_s = time.monotonic() + TIMEOUT_S
    is_over = False
    try:
        with Progress() as progress:
            while time.monotonic() < end_s and not composition.has_failed:
                progress.show(composition.tail(1).strip())
                if not is_over and len(composition.matches(reached)) >= count:
                    is_over, end_s = True, time.monotonic() + LINGER_S
                time.sleep(STATUS_PERIOD_S)
    finally:
        ended_well = composition.stop()
    if is_over and ended_well:
        return True
    print(composition.tail(), file=sys.stderr)
    arrived = len(composition.matches(reached))
    what = "not every process exited cleanly" if is_over else f"{arrived} of {count} reached their targets"
    print(f"The flight failed: {what}; the complete output is in {folder / 'log.txt'}.", file=sys.stderr)
    return False


def _print_results(folder: Path, results: dict[str, str]) -> None:
    """Print a table of results and files, and write the report of the bag."""
    results |= {"recorded": f"{folder / 'bag'}", "report": str(write_report(folder / "bag", folder / "report.html"))}
    for name, value in results.items():
        print(f"  {name:20} {value}")


def _free_ports(count: int) -> int:
    """Return the first of so many free TCP ports in a row. Raises OSError when there are none."""
    for first in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError(f"There are no {count} free ports in a row.")
