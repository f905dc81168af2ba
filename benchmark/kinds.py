# SPDX-License-Identifier: Apache-2.0
"""The bridges of a campaign: how each and its emulated vehicle are started, and which commands are neutral."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from relay import CommandReader

from drone_bridge.dronegui import codec as dronegui
from drone_bridge.robot import codec as robot
from drone_bridge.simulator import codec as simulator
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.wire import NEED_DATA

_MOTION_PARAMETERS: Final = struct.Struct(">4f")
#: Largest yaw rate of a neutral command, degrees/s. A hovering drone uses the other axes to stay in place.
_HOVERING_RATE: Final = 0.5


def testbed_reader() -> CommandReader:
    """Read answers to frames; those without a yaw rate are neutral, as a hovering drone leans against the wind."""
    heard = bytearray()

    def read(data: bytes) -> Iterable[bool]:
        heard.extend(data)
        while len(heard) >= _MOTION_PARAMETERS.size:
            _, _, yaw_rate, _ = _MOTION_PARAMETERS.unpack_from(heard)
            del heard[: _MOTION_PARAMETERS.size]
            yield abs(yaw_rate) <= _HOVERING_RATE

    return read


def dronegui_reader() -> CommandReader:
    """Read packets of a controller: hover is neutral, and so is a button without tilt."""

    def read(data: bytes) -> Iterable[bool]:
        connection = dronegui.ReceiverConnection(complete_states_only=True)  # each: a new bridge counts from 1 again
        connection.receive_data(data)
        if isinstance(packet := connection.next_event(), dronegui.ControlPacket):
            controls = packet.controls
            yield controls.hover or not any((controls.roll, controls.pitch, controls.yaw, controls.gas))

    return read


def robot_reader() -> CommandReader:
    """Read speeds of the tracks."""
    connection = robot.RobotConnection((robot.SubsystemType.SKID_STEER, robot.SubsystemType.LIGHTS))

    def read(data: bytes) -> Iterable[bool]:
        connection.receive_data(data)
        while (packet := connection.next_event()) is not NEED_DATA:
            if isinstance(packet, robot.SkidSteerUpdate):
                yield packet.left == packet.right == 0

    return read


def simulator_reader() -> CommandReader:
    """Read velocities of the vehicle."""
    connection = simulator.ServerConnection()

    def read(data: bytes) -> Iterable[bool]:
        connection.receive_data(data)
        while (request := connection.next_event()) is not NEED_DATA:
            if isinstance(request, simulator.SetEntity) and request.attribute == simulator.Attribute.VELOCITY:
                assert isinstance(request.value, tuple)
                yield not any(request.value)

    return read


def telemetry_reader() -> CommandReader:
    """Read commands to a drone."""
    connection = telemetry.DroneConnection()

    def read(data: bytes) -> Iterable[bool]:
        connection.receive_data(data)
        while isinstance(command := connection.next_event(), telemetry.DroneCommand):
            yield not any((command.thrust, command.pitch, command.roll, command.yaw))

    return read


@dataclass(frozen=True)
class Kind:
    """How the two programs of a protocol are started; texts may name {near}, {far} and {extra}, which are ports."""

    name: str
    make_reader: Callable[[], CommandReader]
    emulator: str  # the command line
    bridge: tuple[str, ...]
    is_stream: bool = True
    vehicle_begins: bool = False
    takes_rates: bool = False  # which are stamped, instead of cmd_vel
    vehicle_asks: bool = False  # for each step of its motion, so that nothing moves it until it has asked again


KINDS: Final = (
    Kind(
        "testbed",
        testbed_reader,
        "testbed_emulator --port {far} --realtime --rate 20 --width 64 --height 48 --layout pose",
        ("port:={near}", "attitude_layout:=pose"),
        vehicle_asks=True,
        takes_rates=True,
    ),
    Kind(
        "dronegui",
        dronegui_reader,
        "dronegui_emulator --port {far} --navdata-port {extra} --navdata-source-port 0 --bootstrapped",
        ("port:={near}", "navdata_port:={extra}"),
        is_stream=False,
    ),
    Kind(
        "simulator",
        simulator_reader,
        "simulator_emulator --port {far} --rate 20 --running --scene buoys",
        ("port:={near}", "body_to_model:=[1.0, 0.0, 0.0, 0.0]"),
    ),
    Kind(
        "robot",
        robot_reader,
        "robot_emulator --port {far} --no-discovery --sensor-period 0.1",
        ("port:={near}",),
    ),
    Kind(
        "telemetry",
        telemetry_reader,
        "landing_emulator --port {near}",
        ("port:={far}", "transport:=udp"),
        is_stream=False,
        vehicle_begins=True,
    ),
)
