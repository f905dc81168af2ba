# SPDX-License-Identifier: Apache-2.0
"""An AR.Drone 1 or 2 itself: AT commands to the drone, navdata back."""

from drone_bridge.kind import CUT_MOTORS, NodeKind, Port, Program, ProtocolKind, Role, Side

KIND = ProtocolKind(
    name="ardrone",
    title="AR.Drone",
    summary="an AR.Drone 1 or 2, without a GUI",
    ports=(
        Port("port", 5556, Side.VEHICLE),
        Port("navdata_port", 5554, Side.VEHICLE),
        Port("control_port", 5559, Side.VEHICLE),
        Port("video_port", 5555, Side.VEHICLE),
    ),
    operator_role=Role("client", "drone_bridge.ardrone.codec:ClientConnection"),
    vehicle_role=Role("drone", "drone_bridge.ardrone.codec:DroneConnection"),
    is_stream=False,
    conversation="drone_bridge.ardrone.sample_conversation:conversation",
    commands="drone_bridge.ardrone.sample_conversation:commands",
    recorded="drone_bridge.ardrone.sample_conversation:RecordedDrone",
    topics="drone_bridge.ardrone.topics:TABLE",
    bridge=NodeKind("drone_bridge.ardrone.bridge:ArdroneBridge"),
    emulator=Program(
        "ardrone",
        "an AR.Drone 1 or 2",
        "drone_bridge.ardrone.vehicle.emulator.__main__:main",
        agreed={
            "host": "host",
            "port": "port",
            "navdata_port": "navdata-port",
            "control_port": "control-port",
            "video_port": "video-port",
        },
        at_once={"in-the-air": True, "bootstrapped": True},
    ),
    operator=Program(
        "ardrone",
        "a client of an AR.Drone",
        "drone_bridge.ardrone.vehicle.operator:main",
        agreed={"host": "host", "port": "port", "navdata_port": "navdata-port", "control_port": "control-port"},
        at_once={"in-the-air": True},
    ),
    emergencies={"emergency": CUT_MOTORS},
    launch_file="ardrone.launch.xml",
    watchdog_s=0.25,  # of the emulated drone; real ones have 0.05 to 0.25 s
    findings="drone_bridge.ardrone.vehicle.findings:findings",
    controller=NodeKind("drone_bridge.controllers.drone_controller:DroneController"),
)
