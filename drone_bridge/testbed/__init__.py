# SPDX-License-Identifier: Apache-2.0
"""The virtual drone testbed of a university course: stereo frames in lockstep, over TCP."""

from collections.abc import Mapping

from drone_bridge.kind import NodeKind, Port, Program, ProtocolKind, Role, Side, Value


def _emulator_options(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the emulator's options. Both ends must agree on who listens, and on a layout that is not announced."""
    layout = parameters.get("attitude_layout", "auto")
    role: Value = "connect" if parameters.get("role") == "listen" else "listen"
    return {"role": role} if layout == "auto" else {"role": role, "layout": layout}


KIND = ProtocolKind(
    name="testbed",
    title="virtual testbed",
    summary="a drone with two cameras in a seeded world",
    ports=(Port("port", 8000, Side.VEHICLE),),
    operator_role=Role("autopilot", "drone_bridge.testbed.codec:AutopilotConnection"),
    vehicle_role=Role("testbed", "drone_bridge.testbed.codec:TestbedConnection"),
    is_stream=True,
    conversation="drone_bridge.testbed.sample_conversation:conversation",
    commands="drone_bridge.testbed.sample_conversation:commands",
    recorded="drone_bridge.testbed.sample_conversation:RecordedTestbed",
    topics="drone_bridge.testbed.topics:TABLE",
    bridge=NodeKind("drone_bridge.testbed.bridge.node:TestbedBridge"),
    server=NodeKind("drone_bridge.testbed.vehicle.server.node:TestbedServer"),
    emulator=Program(
        "testbed",
        "a drone with two cameras in a seeded world",
        "drone_bridge.testbed.vehicle.emulator.__main__:main",
        agreed={"host": "host", "port": "port"},
        apart={"realtime": True},
        agree=_emulator_options,
    ),
    operator=Program(
        "testbed",
        "an autopilot that flies by body rates and thrust",
        "drone_bridge.testbed.vehicle.operator:main",
        agreed={"host": "host", "port": "port"},
    ),
    launch_file="testbed.launch.xml",
    controller=NodeKind("drone_bridge.controllers.drone_controller:DroneController"),
    has_north=True,
)
