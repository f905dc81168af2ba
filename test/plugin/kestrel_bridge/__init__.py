# SPDX-License-Identifier: Apache-2.0
"""Kestrel, a made-up drone: text commands in datagrams, answers by name, and state for the client that greets it."""

from drone_bridge.kind import NodeKind, Port, Program, ProtocolKind, Role, Side

KIND = ProtocolKind(
    name="kestrel",
    title="kestrel",
    summary="a made-up drone that is commanded by text",
    ports=(Port("port", 7800, Side.VEHICLE),),
    operator_role=Role("client", "kestrel_bridge.codec:ClientConnection"),
    vehicle_role=Role("drone", "kestrel_bridge.codec:DroneConnection"),
    is_stream=False,
    conversation="kestrel_bridge.sample_conversation:conversation",
    commands="kestrel_bridge.sample_conversation:commands",
    topics="kestrel_bridge.topics:TABLE",
    bridge=NodeKind("kestrel_bridge.bridge:KestrelBridge"),
    server=NodeKind("kestrel_bridge.server:KestrelServer"),
    emulator=Program(
        "kestrel",
        "a made-up drone that is commanded by text",
        "kestrel_bridge.emulator:main",
        agreed={"host": "host", "port": "port"},
    ),
    operator=Program(
        "kestrel",
        "a client of the made-up drone",
        "kestrel_bridge.operator:main",
        agreed={"host": "host", "port": "port"},
        at_once={"in-the-air": True},
    ),
    launch_file="kestrel.launch.xml",
    controller=NodeKind("drone_bridge.controllers.drone_controller:DroneController"),
    package="kestrel_bridge",
)
