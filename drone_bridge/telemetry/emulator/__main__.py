# SPDX-License-Identifier: Apache-2.0
"""A simulated drone without GPS above a rover with a landing pad.

    python3 -m drone_bridge.telemetry.emulator --rover circular --seed 3 --until-landed

It sends telemetry over UDP to its bridge, and takes commands from it. It reports on standard output, a
line for each event: where it sends to, who commands it, each touchdown and how good it was, where everything ended.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence

from drone_bridge.programs.missing_package import explain_missing

try:
    import cv2
except ModuleNotFoundError as error:
    if __name__ != "__main__":  # an importing program has a name of its own
        raise
    sys.exit(explain_missing("drone_bridge.telemetry.emulator", error))

from drone_bridge.net.connector import Cancellation, LinkCancelledError
from drone_bridge.net.udp import UdpConnector, UdpListener
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.programs.faults import fault_of
from drone_bridge.programs.options import (
    ProgramParser,
    add_bad_network,
    add_choice,
    add_run,
    not_negative,
    port,
    positive,
    triple,
)
from drone_bridge.programs.program import TrajectoryFile, run_program, say, say_retry
from drone_bridge.telemetry.codec import DEFAULT_PORT
from drone_bridge.telemetry.device import PERIOD_S
from drone_bridge.telemetry.emulator.conversation import Conversation, FaultKind
from drone_bridge.telemetry.emulator.pad import PAD_HEIGHT
from drone_bridge.telemetry.emulator.rover import Pattern
from drone_bridge.telemetry.emulator.touchdown import Touchdown
from drone_bridge.telemetry.emulator.vehicle import Setup, Vehicle
from drone_bridge.telemetry.emulator.world import COLUMNS, LANDING_GEAR, Phase

REPORT_PERIOD_S = 1.0
#: A drone has landed when it has stood for this long after a good touchdown; by then its telemetry has said so often.
STAYS_S = 1.0
LOWEST_START = 1.0  # m
HIGHEST_START = 50.0


class Watch:
    """Records and reports the flight, and decides when it ends."""

    def __init__(
        self, vehicle: Vehicle, duration: float, until_landed: bool, trajectory: TrajectoryFile | None
    ) -> None:
        """`duration` in simulated s."""
        self.has_landed_well = False
        self._vehicle = vehicle
        self._frames = round(duration / PERIOD_S) if math.isfinite(duration) else math.inf
        self._until_landed = until_landed
        self._trajectory = trajectory
        self._phase = vehicle.world.phase
        self._touchdown: Touchdown | None = None
        self._report_due_s = REPORT_PERIOD_S

    def goes_on(self) -> bool:
        """Record a frame; return whether the flight goes on."""
        world = self._vehicle.world
        if self._trajectory:
            self._trajectory.write(world.row())
        if world.touchdown and world.touchdown is not self._touchdown:
            say(world.touchdown.describe())
        if world.phase is Phase.FLYING and self._phase is not Phase.FLYING:
            say(f"took off: {world.describe()}")
        self._phase, self._touchdown = world.phase, world.touchdown
        if world.time >= self._report_due_s:
            self._report_due_s += REPORT_PERIOD_S
            say(world.describe())
        touchdown = self._vehicle.touchdown
        if touchdown and touchdown.is_good and world.time - touchdown.time >= STAYS_S:
            self.has_landed_well = True
            if self._until_landed:
                return False
        return self._vehicle.frames < self._frames


def fly(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Fly until the end; return the exit code. Raises LinkError and OSError."""
    cv2.setNumThreads(1)  # images are small: waking other threads for them costs more than it gains
    vehicle = Vehicle(make_setup(options))
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    listener = None
    if options.rover_port is not None:
        listener = UdpListener(options.rover_host, options.rover_port, cancellation)
        stack.callback(listener.close)
        say(f"rover telemetry on {options.rover_host}:{listener.port}")
    connector = UdpConnector(options.host, options.port, cancellation, say_retry)
    duration = math.inf if options.duration is None else options.duration
    watch = Watch(vehicle, duration, options.until_landed, trajectory)
    conversation = None
    with contextlib.suppress(LinkCancelledError):
        stream = connector.open()
        stack.callback(stream.close)
        say(f"sending to {stream.peer}")
        conversation = Conversation(
            vehicle,
            stream,
            BadNetwork(options.loss, options.reorder, options.seed),
            rover_listener=listener,
            publish_rover=options.publish_rover,
            fault=options.fault,
        )
        conversation.run(options.speed, watch.goes_on)
    if conversation:
        say(
            f"ended: {vehicle.world.describe()}; {conversation.sent} documents sent, "
            f"{conversation.commands} commands, {conversation.refused} refused"
        )
    return int(options.until_landed and not watch.has_landed_well)


def make_setup(options: argparse.Namespace) -> Setup:
    """Build the setup from command line options."""
    return Setup(
        seed=options.seed,
        pattern=options.rover,
        rover_speed=options.rover_speed,
        rover_amplitude=options.rover_amplitude,
        height=options.height,
        starts_on_ground=options.start == "ground",
        wind=options.wind,
        gusts=options.gusts,
        images=not options.no_images,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("landing", fly, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser(
        "emulate",
        "landing",
        "A simulated drone without GPS above a rover with a landing pad.",
        "after --duration",
    )
    link = parser.add_argument_group("link")
    link.add_argument("--host", default="127.0.0.1", help="where the telemetry goes (%(default)s)")
    link.add_argument("--port", type=port, default=DEFAULT_PORT, help="where the telemetry goes (%(default)s)")
    add_bad_network(link)
    link.add_argument("--no-images", action="store_true", help="omit the camera's image")
    link.add_argument(
        "--fault",
        type=fault_of(FaultKind),
        metavar="KIND@FRAME",
        help="truncate, garbage, not-jpeg, huge or stall in this telemetry document, from 0",
    )
    rover = parser.add_argument_group("rover")
    add_choice(
        rover,
        "--rover",
        Pattern.STATIONARY,
        "its path, or follow: the position in received rover telemetry",
    )
    rover.add_argument("--rover-speed", type=positive, default=0.5, help="m/s (%(default)s)")
    rover.add_argument("--rover-amplitude", type=positive, default=2.0, help="of its pattern, m (%(default)s)")
    rover.add_argument("--rover-host", default="127.0.0.1", help="to listen on for rover telemetry (%(default)s)")
    rover.add_argument(
        "--rover-port",
        type=port,
        help="extra port to listen on for rover telemetry; 0 picks a free one (none)",
    )
    rover.add_argument("--publish-rover", action="store_true", help="also send the rover's telemetry")
    drone = parser.add_argument_group("drone")
    drone.add_argument("--start", choices=("air", "ground"), default="air", help="where it starts (%(default)s)")
    drone.add_argument("--height", type=positive, default=5.0, help="of a start in the air, m (%(default)s)")
    drone.add_argument("--wind", type=triple, metavar="'X Y Z'", default=(0.0, 0.0, 0.0), help="m/s (none)")
    drone.add_argument("--gusts", type=not_negative, default=0.3, help="standard deviation, m/s (%(default)s)")
    run = add_run(parser, seed_of="start, gusts, noise, ground and losses", duration="simulated seconds")
    run.add_argument("--speed", type=positive, default=1.0, help="simulated seconds per second (%(default)s)")
    run.add_argument(
        "--until-landed",
        action="store_true",
        help=f"exit with 0 once the drone has stood on the pad for {STAYS_S:g} s after a good landing, else with 1",
    )
    options = parser.parse_args(arguments)
    if not options.port:
        parser.error("argument --port: must be above 0, as the telemetry goes there")
    if not LOWEST_START <= options.height <= HIGHEST_START:
        parser.error(
            f"argument --height: must be from {LOWEST_START:g} to {HIGHEST_START:g}, well above the pad at "
            f"{PAD_HEIGHT + LANDING_GEAR:g}, not {options.height:g}"
        )
    return options


if __name__ == "__main__":
    sys.exit(main())
