# SPDX-License-Identifier: Apache-2.0
"""Feed every codec, in every role, with mutations of what real programs sent: whole, and split anywhere.

Each input has to give events or RemoteProtocolError, and to terminate. Anything else is printed with the seed that
reproduces it, and the exit status is 1.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from drone_bridge.dronegui import codec as dronegui
from drone_bridge.robot import codec as robot
from drone_bridge.simulator import codec as simulator
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.testbed import codec as testbed
from drone_bridge.wire.events import NEED_DATA, ConnectionClosed, RemoteProtocolError

CAPTURES = Path(__file__).resolve().parent.parent / "test" / "captures"
MAX_EVENTS = 10_000  # of one input: more than its bytes can hold
MAX_INPUT_BYTES = 4096  # of a stream: a window of a capture, which is much longer
MAX_SLICES = 8
INTERESTING = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


@dataclass(frozen=True)
class Target:
    """A codec in one role."""

    name: str
    make: Callable[[], object]
    seeds: tuple[bytes, ...]
    is_stream: bool = True


def targets() -> Iterator[Target]:
    """Yield every codec and role, with the captures to mutate for it."""

    def capture(name: str) -> bytes:
        return (CAPTURES / name).read_bytes()

    from_testbed = capture("testbed_to_autopilot.bin")
    for layout in testbed.AttitudeLayout:
        yield Target(
            f"testbed autopilot {layout.value}",
            lambda layout=layout: testbed.AutopilotConnection(layout),  # type: ignore[misc]
            (from_testbed,),
        )
    yield Target("testbed testbed", _waiting_testbed, (capture("autopilot_to_testbed.bin"),))
    yield Target("simulator client", _asking_client, (capture("simulator_server.bin"),))
    yield Target("simulator server", simulator.ServerConnection, (capture("simulator_client.bin"),))
    yield Target("robot driver", robot.DriverConnection, (capture("robot_to_driver.bin"),))
    types = (robot.SubsystemType.SKID_STEER, robot.SubsystemType.LIGHTS, 7)
    yield Target("robot robot", lambda: robot.RobotConnection(types), (capture("driver_to_robot.bin"),))
    controls = dronegui.ControllerConnection()
    packets = tuple(controls.send(dronegui.Controls(roll=0.25 * step, hover=False)) for step in range(4))
    yield Target("dronegui receiver", dronegui.ReceiverConnection, packets, is_stream=False)
    lenient = dronegui.ReceiverConnection
    python = tuple(packet.replace(b"true", b"True").replace(b"false", b"False") for packet in packets)
    yield Target("dronegui receiver python", lambda: lenient(python_literals=True), python, is_stream=False)
    navdata = tuple(capture("gui_to_controller_navdata.jsonl").splitlines())
    yield Target("dronegui controller", dronegui.ControllerConnection, navdata, is_stream=False)
    documents = _telemetry()
    yield Target("telemetry controller", telemetry.ControllerConnection, documents, is_stream=False)
    command = telemetry.ControllerConnection().send(telemetry.DroneCommand(0.5, 0.1, -0.1, 0.2))
    yield Target("telemetry drone", telemetry.DroneConnection, (command, documents[-1]), is_stream=False)


def _waiting_testbed() -> testbed.TestbedConnection:
    connection = testbed.TestbedConnection()
    constants = testbed.Constants(90, 60, 2, 1, 0.25, 1, 9.8, 0.2, 25, 720, 720, 720)
    connection.send(constants)
    connection.send(testbed.SensorFrame(bytes(6), bytes(6), 0.0, 0.0, yaw=0.0))
    return connection


def _asking_client() -> simulator.ClientConnection:
    """Return a client that has sent the requests that the capture answers."""
    server, client = simulator.ServerConnection(), simulator.ClientConnection()
    server.receive_data((CAPTURES / "simulator_client.bin").read_bytes())
    while isinstance(request := server.next_event(), simulator.Request):
        client.send(request)
    return client


def _telemetry() -> tuple[bytes, ...]:
    zero = telemetry.Vector(0.0, 0.0, 9.81)
    jpeg = bytes.fromhex("ffd8ffc0000b080001000101011100ffd9")
    drone = telemetry.DroneTelemetry(
        telemetry.Imu(telemetry.Orientation(0.1, 0.2, 0.3), zero, zero),
        telemetry.Altimeter(2.0, -0.1),
        zero,
        telemetry.LandingPad(0.1, 0.2, 2.0, 0.9),
        telemetry.Camera(320, 240, 60.0, jpeg),
        False,
        1.0,
    )
    rover = telemetry.RoverTelemetry(zero, zero, "circular", 1.0)
    return telemetry.DroneConnection().send(drone), telemetry.RoverConnection().send(rover)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the data with some bytes changed, left out, repeated, inserted, or cut off."""
    result = bytearray(data)
    for _ in range(chance.randint(0, 6)):
        place = chance.randrange(len(result) + 1)
        length = chance.choice((1, 1, 2, 4, 8, 64))
        kind = chance.randrange(6)
        if kind == 0:
            del result[place : place + length]
        elif kind == 1:
            result[place:place] = chance.randbytes(length)
        elif kind == 2:
            result[place:place] = result[max(0, place - length) : place]
        elif kind == 3:
            result[place : place + length] = bytes([chance.choice(INTERESTING)]) * length
        elif kind == 4 and place < len(result):
            result[place] ^= 1 << chance.randrange(8)
        elif kind == 5 and chance.random() < 0.3:
            del result[place:]
    return bytes(result)


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """Return the data whole, or cut at random places."""
    if chance.random() < 0.5:
        return [data]
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, MAX_SLICES)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def feed(target: Target, parts: list[bytes]) -> str:
    """Return the outcome: events or refused. Raises whatever else the codec raises."""
    connection = target.make()
    count, outcome = 0, "events"
    for part in parts:
        connection.receive_data(part)  # type: ignore[attr-defined]
        count, outcome = _drain(connection, target, count, outcome)
    if target.is_stream:
        connection.receive_eof()  # type: ignore[attr-defined]
        count, outcome = _drain(connection, target, count, outcome)
    return outcome


def _drain(connection: object, target: Target, count: int, outcome: str) -> tuple[int, str]:
    while True:
        try:
            event = connection.next_event()  # type: ignore[attr-defined]
        except RemoteProtocolError:
            if target.is_stream:
                return count, "refused"
            outcome = "refused"
            continue
        if event is NEED_DATA or isinstance(event, ConnectionClosed):
            return count, outcome
        count += 1
        if count > MAX_EVENTS:
            raise AssertionError(f"more than {MAX_EVENTS} events, and no end")


def run(target: Target, inputs: int, seed: int) -> tuple[int, float, list[str]]:
    """Return how many inputs were refused, the slowest one in s, and what went wrong."""
    refused, slowest_s, wrong = 0, 0.0, []
    for number in range(inputs):
        chance = random.Random(f"{seed} {target.name} {number}")
        data = chance.choice(target.seeds)
        if target.is_stream:
            data = data[: chance.randint(1, MAX_INPUT_BYTES)]
        data = mutated(data, chance)
        parts = pieces(data, chance) if target.is_stream else [data]
        started_s = time.perf_counter()
        try:
            refused += feed(target, parts) == "refused"
        except Exception as error:  # the faults that are looked for
            wrong.append(f"{target.name}, seed {seed}, input {number}: {type(error).__name__}: {error}; {data.hex()}")
        slowest_s = max(slowest_s, time.perf_counter() - started_s)
    return refused, slowest_s, wrong


def main() -> int:
    """Fuzz the codecs of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="per codec and role (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations (%(default)s)")
    parser.add_argument("--only", default="", help="codecs and roles whose name contains this")
    arguments = parser.parse_args()
    found = []
    print(f"{'codec and role':<30} {'inputs':>9} {'refused':>9} {'escaped':>8} {'slowest':>10} {'per second':>11}")
    for target in targets():
        if arguments.only not in target.name:
            continue
        started_s = time.perf_counter()
        refused, slowest_s, wrong = run(target, arguments.inputs, arguments.seed)
        rate = arguments.inputs / (time.perf_counter() - started_s)
        slowest = f"{slowest_s * 1000:.1f} ms"
        print(f"{target.name:<30} {arguments.inputs:>9} {refused:>9} {len(wrong):>8} {slowest:>10} {rate:>11.0f}")
        sys.stdout.flush()
        found += wrong
    for line in found[:20]:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
