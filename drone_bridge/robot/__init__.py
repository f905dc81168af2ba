# SPDX-License-Identifier: Apache-2.0
"""A tracked robot that runs robotd: multicast discovery, control packets over TCP, subsystems and sensors."""

from drone_bridge.kind import Mechanism, NodeKind, Port, Program, ProtocolKind, Role, Side

KIND = ProtocolKind(
    name="robot",
    title="tracked robot",
    summary="a tracked robot",
    ports=(Port("port", 25600, Side.VEHICLE), Port("discovery_port", 25601, Side.VEHICLE)),
    operator_role=Role("driver", "drone_bridge.robot.codec:DriverConnection"),
    vehicle_role=Role("robot", "drone_bridge.robot.sample_conversation:robot_connection"),
    is_stream=True,
    conversation="drone_bridge.robot.sample_conversation:conversation",
    commands="drone_bridge.robot.sample_conversation:commands",
    recorded="drone_bridge.robot.sample_conversation:RecordedRobot",
    topics="drone_bridge.robot.topics:TABLE",
    bridge=NodeKind("drone_bridge.robot.bridge.node:RobotBridge"),
    server=NodeKind("drone_bridge.robot.vehicle.server.node:RobotServer"),
    emulator=Program(
        "robot",
        "a tracked robot",
        "drone_bridge.robot.vehicle.emulator:main",
        agreed={"host": "host", "port": "port"},
        apart={"no-discovery": True},
    ),
    operator=Program(
        "robot",
        "a driver of a tracked robot",
        "drone_bridge.robot.vehicle.operator:main",
        agreed={"host": "host", "port": "port"},
    ),
    launch_file="robot.launch.xml",
    controller=NodeKind("drone_bridge.controllers.rover_controller:RoverController"),
    model="rover",
    represents=(Mechanism.STREAM, Mechanism.PROCESS),
)
