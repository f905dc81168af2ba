# SPDX-License-Identifier: Apache-2.0
"""The control GUI of an AR.Drone: JSON datagrams, controls to the GUI and navdata back."""

from drone_bridge.kind import CUT_MOTORS, Mechanism, NodeKind, Port, Program, ProtocolKind, Role, Side

KIND = ProtocolKind(
    name="dronegui",
    title="AR.Drone",
    summary="a drone behind its control GUI",
    ports=(
        Port("port", 5560, Side.VEHICLE),
        Port("navdata_port", 5561, Side.OPERATOR),
        Port("video_port", 5562, Side.OPERATOR),
    ),
    operator_role=Role("controller", "drone_bridge.dronegui.codec:ControllerConnection"),
    vehicle_role=Role("gui", "drone_bridge.dronegui.codec:ReceiverConnection"),
    is_stream=False,
    conversation="drone_bridge.dronegui.sample_conversation:conversation",
    commands="drone_bridge.dronegui.sample_conversation:commands",
    recorded="drone_bridge.dronegui.sample_conversation:RecordedGui",
    topics="drone_bridge.dronegui.topics:TABLE",
    bridge=NodeKind("drone_bridge.dronegui.bridge:DroneGuiBridge"),
    server=NodeKind("drone_bridge.dronegui.vehicle.server:DroneGuiServer"),
    emulator=Program(
        "dronegui",
        "a drone behind its control GUI",
        "drone_bridge.dronegui.vehicle.emulator.__main__:main",
        agreed={"host": "host", "port": "port", "navdata_port": "navdata-port", "video_port": "video-port"},
        apart={"navdata-source-port": 0, "video-source-port": 0, "bootstrapped": True},
    ),
    operator=Program(
        "dronegui",
        "a client of the control GUI",
        "drone_bridge.dronegui.vehicle.operator:main",
        agreed={"host": "host", "port": "port", "navdata_port": "navdata-port"},
        at_once={"in-the-air": True},
    ),
    emergencies={"emergency": CUT_MOTORS},
    launch_file="dronegui.launch.xml",
    controller=NodeKind("drone_bridge.controllers.drone_controller:DroneController"),
    represents=(Mechanism.NUMBERED,),
)
