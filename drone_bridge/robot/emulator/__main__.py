# SPDX-License-Identifier: Apache-2.0
"""A simulated tracked robot: discovery over UDP, control over TCP, several drivers at once.

    python3 -m drone_bridge.robot.emulator --name saber

Runs in real time. It reports on standard output, a line for each event: where it listens, who has connected, who has
bound what, why the motors were stopped, where the robot stood at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import socket
import sys
from collections.abc import Sequence
from typing import Final

from drone_bridge.net.connector import Cancellation
from drone_bridge.net.discovery import DISCOVERY_GROUP, DISCOVERY_PORT, DiscoveryResponder, DiscoveryRoute
from drone_bridge.programs.faults import fault_of
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_choice,
    add_run,
    not_negative,
    port,
    positive,
    probability,
)
from drone_bridge.programs.program import TrajectoryFile, cancelled_or_after, run_program, say
from drone_bridge.robot.codec import PROTOCOL_VERSION, TCP_PORT, FirmwareInfo
from drone_bridge.robot.device.control import Control
from drone_bridge.robot.device.protocol_1 import Protocol1Control
from drone_bridge.robot.device.robotd import Dialect, FaultyRobotdControl
from drone_bridge.robot.device.vehicle import TRACKS
from drone_bridge.robot.emulator.server import COLUMNS, FaultKind, Server
from drone_bridge.robot.emulator.simulated import SUBSYSTEMS, SimulatedRobot
from drone_bridge.robot.emulator.vehicle import Chassis, Vehicle

SENSOR_PERIOD_S: Final = 1.0  # between readings, where the dialect has no period of its own


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Serve until the end. Raises LinkError, OSError and ValueError."""
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    asyncio.run(_serve(options, cancellation, trajectory))
    return 0


async def _serve(options: argparse.Namespace, cancellation: Cancellation, trajectory: TrajectoryFile | None) -> None:
    chassis = Chassis(options.wheel_separation, options.max_wheel_speed, options.full_voltage, options.capacity)
    vehicle = Vehicle(chassis, charge=options.charge)
    robot = SimulatedRobot(vehicle, options.subsystems, appears_s=options.appear_after, is_verbose=options.verbose)
    if options.dialect is Dialect.ROBOTD_1_2:
        control: Control = FaultyRobotdControl(robot, say)
    elif options.dialect is Dialect.PROTOCOL_1:
        control = Protocol1Control(robot, say)
    else:
        control = Control(robot, say, FirmwareInfo("emulator", "1", PROTOCOL_VERSION))
    silence_s = options.silence_timeout or math.inf
    server = Server(
        robot,
        control,
        options.host,
        options.port,
        fault=options.fault,
        silence_s=silence_s,
        reads_one_packet=options.one_packet_per_read,
    )
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        stack.callback(server.clients.close)
        await server.clients.start()
        if not options.no_discovery:
            _respond(options, loop, stack)
        say(f"listening on {options.host}:{server.clients.port}")
        tasks = [
            asyncio.create_task(server.move(1 / options.rate, trajectory)),
            asyncio.create_task(server.measure(options.sensor_period or control.readings_period_s or SENSOR_PERIOD_S)),
        ]
        await cancelled_or_after(cancellation, options.duration)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.hang_up()
    say(
        f"ended: {vehicle.time:.2f} s, at x {vehicle.x:.3f} m, y {vehicle.y:.3f} m, "
        f"heading {math.degrees(vehicle.heading):.1f} degrees, battery {vehicle.voltage:.2f} V"
    )


def _respond(options: argparse.Namespace, loop: asyncio.AbstractEventLoop, stack: contextlib.ExitStack) -> None:
    route = DiscoveryRoute(options.discovery_address, options.discovery_port, options.discovery_interface)
    responder = DiscoveryResponder(options.name, route)
    stack.callback(responder.close)

    def answer(readable: socket.socket) -> None:
        for peer in responder.answer(readable):
            say(f"answered {peer} as {options.name}")

    for opened in responder.sockets:
        loop.add_reader(opened, answer, opened)
        stack.callback(loop.remove_reader, opened)
    say(f"discovery on {route.address}:{responder.port} through {route.interface}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("robot", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser("emulate", "robot", "A simulated tracked robot, in real time.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, TCP_PORT)
    add_choice(link, "--dialect", Dialect.DOCUMENT, "variant of the protocol")
    link.add_argument(
        "--silence-timeout",
        type=not_negative,
        default=2.0,
        help="silence after which a driver is dropped and its motors are stopped, s; 0 for never "
        "(%(default)s); robotd-1.2 drops drivers only while 16 are connected",
    )
    link.add_argument(
        "--one-packet-per-read",
        action="store_true",
        help="handle one packet per socket read, as the LEGO NXT adapters do; others that came with it wait",
    )
    link.add_argument(
        "--fault",
        type=fault_of(FaultKind),
        metavar="KIND@KEEPALIVE",
        help="truncate, garbage or silence instead of the answer to this keep-alive (from 0) of the first driver",
    )
    discovery = parser.add_argument_group("discovery")
    discovery.add_argument("--name", default=socket.gethostname(), help="of the robot (%(default)s)")
    discovery.add_argument("--no-discovery", action="store_true", help="do not answer")
    discovery.add_argument("--discovery-address", default=DISCOVERY_GROUP, help="the group (%(default)s)")
    discovery.add_argument(
        "--discovery-port", type=port, default=DISCOVERY_PORT, help="0 takes a free one (%(default)s)"
    )
    discovery.add_argument(
        "--discovery-interface", default="127.0.0.1", help="its address; 0.0.0.0 for all (%(default)s)"
    )
    robot = parser.add_argument_group("robot")
    robot.add_argument(
        "--subsystems",
        type=_subsystems,
        default=tuple(SUBSYSTEMS),
        metavar="tracks,headlight",
        help="its subsystems, in list order (%(metavar)s)",
    )
    robot.add_argument(
        "--no-light",
        dest="subsystems",
        action="store_const",
        const=(TRACKS,),
        help="tracks only: robotd's Java driver can't read a list with further subsystems",
    )
    robot.add_argument(
        "--appear-after",
        type=not_negative,
        default=0.0,
        metavar="SECONDS",
        help="until then it has no subsystems and sensors; protocol-1 then lists them unasked (%(default)s)",
    )
    robot.add_argument("--wheel-separation", type=positive, default=0.5, help="m (%(default)s)")
    robot.add_argument("--max-wheel-speed", type=positive, default=1.0, help="at 2048, m/s (%(default)s)")
    robot.add_argument("--full-voltage", type=positive, default=12.6, help="V (%(default)s)")
    robot.add_argument("--capacity", type=positive, default=7.0, help="of the battery, Ah (%(default)s)")
    robot.add_argument(
        "--charge", type=probability, default=1.0, help="of the battery at the start, 0 to 1 (%(default)s)"
    )
    run_options = add_run(parser, rate=(50.0, "steps of the physics per second"), duration="seconds")
    run_options.add_argument(
        "--sensor-period", type=positive, help=f"between readings, s ({SENSOR_PERIOD_S:g}; 0.25 with protocol-1)"
    )
    run_options.add_argument("--verbose", action="store_true", help="also report each change of the motors")
    return parser.parse_args(arguments)


def _subsystems(text: str) -> tuple[str, ...]:
    """Parse comma-separated names of subsystems."""
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) < len(names) or not SUBSYSTEMS.keys() >= set(names):
        raise argparse.ArgumentTypeError(f"must be {' and '.join(SUBSYSTEMS)}, each at most once, not {text!r}")
    return names


if __name__ == "__main__":
    sys.exit(main())
