# SPDX-License-Identifier: Apache-2.0
"""Emulated underwater simulator: rigid bodies in water, one world for several clients over TCP.

    python3 -m drone_bridge.simulator.vehicle.emulator --scene buoys

It starts paused, as specified. It is no `Emulation` but runs on asyncio, since it reads the lengths of its clients'
queues, half-closes connections, and by a quirk writes into closed ones. It prints a line for each event: listening,
connections and why they ended, and the final position of the vehicle.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
from collections.abc import Sequence

from drone_bridge.motion.wxyz import IDENTITY, WxyzQuaternion, unit
from drone_bridge.net.connector import Cancellation
from drone_bridge.net.tcp import listening_socket
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_choice,
    add_flag,
    add_number,
    add_run,
    add_word,
    read_by,
)
from drone_bridge.programs.program import TrajectoryFile, cancelled_or_after, print_event, run_program
from drone_bridge.simulator.codec import DEFAULT_PORT, VEHICLE
from drone_bridge.simulator.vehicle.device.requests import Context, Quirks
from drone_bridge.simulator.vehicle.device.world import RunControl, Timing, World
from drone_bridge.simulator.vehicle.emulator.scene import SCENES, SimulatedScene, add_default_environment
from drone_bridge.simulator.vehicle.emulator.server import COLUMNS, Server
from drone_bridge.wire.addresses import address_name

BACKLOG = 100


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Serve until cancelled. Raises OSError, and LinkError if the address is not available."""
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    asyncio.run(_serve(options, cancellation, trajectory))
    return 0


async def _serve(options: argparse.Namespace, cancellation: Cancellation, trajectory: TrajectoryFile | None) -> None:
    timing = Timing(options.rate, options.speed)
    scene = SimulatedScene(timing.step_s, print_event, random.Random(options.seed))
    world = World(scene)
    add_default_environment(world, scene, options.btom)
    SCENES[options.scene](world, scene)
    context = Context(world, RunControl(), timing, options.quirks is Quirks.REAL)
    server = Server(context, scene, trajectory, is_fragile=options.fragile)
    server.record()
    if options.running:
        context.control.run(0)
    with contextlib.ExitStack() as stack:
        listening = listening_socket(options.host, options.port, BACKLOG)
        listener = await asyncio.start_server(server.serve, sock=listening)
        stack.callback(listener.close)
        print_event(f"listening on {address_name(options.host, listening.getsockname()[1])}")
        time = asyncio.create_task(server.keep_time())
        await cancelled_or_after(cancellation, options.duration)
        time.cancel()
        await asyncio.gather(time, return_exceptions=True)
        await server.disconnect_all()
    print_event(f"ended: {scene.steps} steps, {scene.time:.2f} simulated s{_final_position(scene)}")


def _final_position(scene: SimulatedScene) -> str:
    if VEHICLE not in scene.entities:
        return ""
    x, y, z = scene.position(VEHICLE)
    return f", vehicle at {x:.3f} {y:.3f} {z:.3f} m"


def _rotation(text: str) -> WxyzQuaternion:
    w, x, y, z = map(float, text.split())
    return unit((w, x, y, z))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    return run_program("simulator", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Exits with a message on errors."""
    parser = ProgramParser("emulate", "simulator", "Emulated underwater simulator.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, DEFAULT_PORT)
    add_choice(link, "--quirks", Quirks.NONE, "none: as documented; real: as the CUAUV server behaves")
    add_flag(link, "--fragile", "die of SIGPIPE on a write to a closed connection, as the CUAUV server does")
    world = parser.add_argument_group("world")
    add_word(world, "--scene", tuple(SCENES), "entities besides the vehicle")
    world.add_argument(
        "--btom",
        type=read_by(_rotation, "a quaternion 'W X Y Z'"),
        default=IDENTITY,
        metavar="'W X Y Z'",
        help="rotation from the vehicle's body frame to its model frame (1 0 0 0)",
    )
    run_options = add_run(
        parser, seed_of="turbulence", rate=(100.0, "steps per second"), duration="seconds of wall time"
    )
    add_number(run_options, "--speed", 1.0, "simulated seconds per second; a step lasts speed/rate")
    add_flag(run_options, "--running", "do not start paused")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
