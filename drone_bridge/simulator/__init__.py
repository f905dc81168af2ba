# SPDX-License-Identifier: Apache-2.0
"""The CUAUV underwater simulator: typed binary messages over TCP, with requests, streams and triggers."""

from drone_bridge.kind import NodeKind, Port, Program, ProtocolKind, Role, Side

KIND = ProtocolKind(
    name="simulator",
    title="submarine",
    summary="an underwater simulator",
    ports=(Port("port", 7772, Side.VEHICLE),),
    operator_role=Role("client", "drone_bridge.simulator.codec:ClientConnection"),
    vehicle_role=Role("simulator", "drone_bridge.simulator.codec:ServerConnection"),
    is_stream=True,
    conversation="drone_bridge.simulator.sample_conversation:conversation",
    commands="drone_bridge.simulator.sample_conversation:commands",
    recorded="drone_bridge.simulator.sample_conversation:RecordedSimulator",
    topics="drone_bridge.simulator.topics:TABLE",
    bridge=NodeKind("drone_bridge.simulator.bridge.node:SimulatorBridge"),
    server=NodeKind("drone_bridge.simulator.vehicle.server.node:SimulatorServer"),
    emulator=Program(
        "simulator",
        "an underwater simulator",
        "drone_bridge.simulator.vehicle.emulator.__main__:main",
        agreed={"host": "host", "port": "port"},
    ),
    operator=Program(
        "simulator",
        "a client of the underwater simulator",
        "drone_bridge.simulator.vehicle.operator:main",
        agreed={"host": "host", "port": "port"},
    ),
    launch_file="simulator.launch.xml",
    controller=NodeKind("drone_bridge.controllers.drone_controller:DroneController"),
    has_north=True,
    emulated={"run_on_connect": True},
    model="submarine",
)
