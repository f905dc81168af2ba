# SPDX-License-Identifier: Apache-2.0
"""Captures of real programs as the wire logs of a bridge that was between them."""

from functools import partial

from repository import CAPTURES

from drone_bridge.ardrone.codec import WAKE_UP
from drone_bridge.kind import Side, kinds, load
from drone_bridge.net.connector import RECEIVED, SENT
from drone_bridge.net.wire_log import WireLog, facts_of
from drone_bridge.robot_class.connection import Packet

ENDS = "tcp", "127.0.0.1:1", "127.0.0.1:2"
VEHICLE, OPERATOR = RECEIVED, SENT  # as a bridge has them
CONSTANTS_BYTES, FRAME_BYTES, REPLY_BYTES = 48, 2 * 9216 + 12, 16  # of the testbed


def capture(name):
    return (CAPTURES / name).read_bytes()


def lockstep():
    """Each frame after the answer to the one before."""
    frames, answers = capture("testbed_to_autopilot.bin"), capture("autopilot_to_testbed.bin")
    yield VEHICLE, frames[:CONSTANTS_BYTES]
    for number in range(3):
        yield VEHICLE, frames[CONSTANTS_BYTES:][number * FRAME_BYTES :][:FRAME_BYTES]
        yield OPERATOR, answers[number * REPLY_BYTES :][:REPLY_BYTES]


def simulator():
    """All requests at once, and the answers in pieces."""
    yield OPERATOR, capture("client_to_simulator.bin")
    answers = capture("simulator_to_client.bin")
    for begin in range(0, len(answers), 100):
        yield VEHICLE, answers[begin : begin + 100]


def robots(driver="driver_to_robot", robot="robot_to_driver"):
    yield OPERATOR, capture(f"{driver}.bin")
    yield VEHICLE, capture(f"{robot}.bin")


def navdata_of_gui():
    for line in capture("gui_to_controller_navdata.jsonl").splitlines():
        yield VEHICLE, line


def video_of_gui():
    for path in sorted((CAPTURES / "dronegui_video").glob("*.bin")):
        yield VEHICLE, path.read_bytes()


def ardrone():
    yield OPERATOR, WAKE_UP
    for name in ("arbdrone_bootup", "arbdrone_flying", "node_navdata"):
        yield VEHICLE, capture(f"ardrone/{name}.bin")


def sampled(kind):
    """Yield the sample conversation of a kind."""
    ends = {side: kind.connect(side) for side in Side}
    for sent in load(kind.conversation)():
        # A robot's report may have the framing of a further link.
        data = sent.message.data if isinstance(sent.message, Packet) else ends[sent.side].send(sent.message)
        yield OPERATOR if sent.side is Side.OPERATOR else VEHICLE, data
        ends[sent.side.other].receive_data(data)
        list(ends[sent.side.other].events())


#: Connections of each, by the protocol: transport, our and the peer's port, and pieces in order.
CONVERSATIONS = {
    "testbed": lambda: [("tcp", 1000, 8000, lockstep())],
    "simulator": lambda: [("tcp", 1000, 7772, simulator())],
    "robot": lambda: [("tcp", 1000, 25600, robots())],
    "dronegui": lambda: [("udp", 5561, 1000, navdata_of_gui())],
}
#: Further ones.
CAPTURED = {
    **CONVERSATIONS,
    "nxt adapter": lambda: [("tcp", 1000, 25600, robots("driver_to_nxt_adapter", "nxt_adapter_to_driver"))],
    "dronegui video": lambda: [("udp video", 5562, 1000, video_of_gui())],
    "ardrone": lambda: [("udp", 1000, 5554, ardrone())],
}
KINDS = {name: name.split()[0] for name in CAPTURED} | {"nxt adapter": "robot"}
for each in kinds().values():
    first, name = each.ports[0], f"sample of {each.name}"
    numbers = (1000, first.default) if first.side is Side.VEHICLE else (first.default, 1000)
    CAPTURED[name] = partial(
        lambda kind, *ends: [(*ends, sampled(kind))], each, "tcp" if each.is_stream else "udp", *numbers
    )
    KINDS[name] = each.name


def written(folder, protocol, *connections, **parameters):
    """Write the log of a bridge, of connections as above; return its path."""
    ended = []
    log = WireLog(folder, "a_bridge", facts_of(protocol, "operator", "a_bridge", parameters), ended.append)
    for transport, own, peer, pieces in connections:
        tap = log(transport, f"127.0.0.1:{own}", f"127.0.0.1:{peer}")
        for direction, data in pieces:
            tap(direction, data)
    assert log.close()
    assert ended == []
    (path,) = folder.glob("*.mcap")
    return path
