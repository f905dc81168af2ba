# SPDX-License-Identifier: Apache-2.0
"""The GPS-denied landing challenge: telemetry with JPEGs, commands, and a rover to land on, in JSON."""

from drone_bridge.kind import NodeKind, Port, Program, ProtocolKind, Role, Side

KIND = ProtocolKind(
    name="telemetry",
    summary="a drone without GPS above a rover, and its telemetry",
    ports=(Port("port", 5555, Side.OPERATOR),),
    operator_role=Role("controller", "drone_bridge.protocols.telemetry:ControllerConnection"),
    vehicle_role=Role("drone", "drone_bridge.protocols.telemetry:DroneConnection"),
    is_stream=False,
    conversation="drone_bridge.telemetry.conversation:conversation",
    bridge=NodeKind("drone_bridge.bridges.telemetry.bridge:TelemetryBridge"),
    server=NodeKind("drone_bridge.servers.telemetry.server:TelemetryServer"),
    emulator=Program(
        "landing",
        "a drone without GPS above a rover, and its telemetry",
        "drone_bridge.emulators.landing.__main__:main",
        agreed={"host": "host", "port": "port"},
    ),
    operator=Program(
        "telemetry",
        "a program that answers the landing challenge's telemetry with commands",
        "drone_bridge.operators.telemetry:main",
    ),
    launch_file="landing.launch.xml",
    controller=NodeKind("drone_bridge.controllers.drone_controller:DroneController"),
    control={"behaviour": "land_on_pad"},
    emulated={"transport": "udp"},
)
