# SPDX-License-Identifier: Apache-2.0
"""The GPS-denied landing challenge: telemetry with JPEGs, commands, and a rover to land on, in JSON."""

from collections.abc import Mapping

from drone_bridge.kind import Mechanism, NodeKind, Port, Program, ProtocolKind, Role, Side, Value


def _emulator_options(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the emulator's options. One end sends first, the other waits: by default the bridge waits."""
    return {"role": "listen" if parameters.get("role") == "connect" else "connect"}


def _operator_options(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the operator's options. By default the server sends first."""
    return {"role": "connect" if parameters.get("role") == "listen" else "listen"}


KIND = ProtocolKind(
    name="telemetry",
    title="landing drone",
    summary="a drone without GPS above a rover, and its telemetry",
    ports=(Port("port", 5555, Side.OPERATOR),),
    operator_role=Role("controller", "drone_bridge.telemetry.codec:ControllerConnection"),
    vehicle_role=Role("drone", "drone_bridge.telemetry.codec:DroneConnection"),
    is_stream=False,
    conversation="drone_bridge.telemetry.sample_conversation:conversation",
    commands="drone_bridge.telemetry.sample_conversation:commands",
    topics="drone_bridge.telemetry.topics:TABLE",
    bridge=NodeKind("drone_bridge.telemetry.bridge:TelemetryBridge"),
    server=NodeKind("drone_bridge.telemetry.vehicle.server:TelemetryServer"),
    emulator=Program(
        "telemetry",
        "a drone without GPS above a rover, and its telemetry",
        "drone_bridge.telemetry.vehicle.emulator.__main__:main",
        agreed={"host": "host", "port": "port"},
        agree=_emulator_options,
    ),
    operator=Program(
        "telemetry",
        "a program that answers the landing challenge's telemetry with commands",
        "drone_bridge.telemetry.vehicle.operator:main",
        agreed={"host": "host", "port": "port"},
        agree=_operator_options,
    ),
    launch_file="telemetry.launch.xml",
    controller=NodeKind("drone_bridge.controllers.drone_controller:DroneController"),
    represents=(Mechanism.DATAGRAMS,),
)
