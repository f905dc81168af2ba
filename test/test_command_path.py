# SPDX-License-Identifier: Apache-2.0
"""The functions that a command passes in telemetry_bridge, from its topic to its socket: a test of the architecture."""

import json
import socket
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from commanded_node import commanded_nodes
from telemetry_documents import drone
from twists import twist

import drone_bridge
from drone_bridge.motion.tilted_drone import TiltedDrone
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.net.link_loop import LinkLoop
from drone_bridge.ros.tilt_commands import TiltCommands
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.session.controller import ControllerSession
from drone_bridge.telemetry.topics import Signs, command_from_shares
from drone_bridge.wire.addresses import AllowedPeers

DRONE = TiltedDrone(max_tilt=0.5, max_climb=2.5, max_yaw_rate=0.5)
PARAMETERS = {"rate": 25.0, "telemetry_timeout": 1.0, "takeover_timeout": 5.0}
PACKAGE = Path(drone_bridge.__file__).parent

#: Of the functions that hand a command on, at most.
MAX_HANDING_ON = 12
#: What they ask, what turns a command into other axes or into bytes.
HELPERS = {
    *("command_ages.stamp_of", "command_ages.refusal", "command_topics._non_finite_field", "command_topics._floats"),
    *("command_topics.<genexpr>", "command_topics.<lambda>", "command_topics.<dictcomp>", "clock.elapsed_s"),
    *("stall_watch.refusal", "stall_watch.running_s", "stall_watch.look", "stall_watch.stood_still_since"),
    *(
        "velocity_messages.in_body",
        "velocity_messages.velocity_from_twist",
        "command_topics._supported",
        "command_topics._is_admitted",
    ),
    *(
        "arbiter.admits",
        "command_streams.report",
        "streams.newest_of",
        "streams.arrived",
        "body_velocity.linear",
    ),
    *("hold_state.is_free", "hold_state.look", "hold_state._has_ended", "arbiter._fresh", "arbiter.rank"),
    *("limits.must_land", "limits.is_blind", "limits.need_odometry", "limits.limited", "limits._slowed"),
    *(
        "note_queue.put",
        "link_loop._now",
        "stall_detector.has_stalled",
        "session.silent_s",
        "session.next_due",
        "session.encode",
    ),
}
#: The codec, what it is made of, the control law and its observer: their inside is their own.
INSIDE = {
    *("codec.py", "json_fields.py", "json_text.py", "outgoing.py", "tilt_control.py", "tilted_drone.py"),
    *("motion_observer.py", "judged_speed.py", "judged_level.py", "belief.py"),
}


class Trace:
    """The package's own functions that are called, in the order of their first calls."""

    def __enter__(self):
        self.called = []
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _note(self, frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents and path.name not in INSIDE:
            name = f"{path.stem if path.stem != '__init__' else path.parent.name}.{frame.f_code.co_name}"
            if name not in self.called:
                self.called.append(name)

    def handing_on(self):
        return [name for name in self.called if name not in HELPERS]


@pytest.fixture
def peer():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(10.0)
        yield peer


def test_a_velocity_passes_twelve_functions_from_its_topic_to_the_socket(monkeypatch, tmp_path, peer):
    node = commanded_nodes(monkeypatch, tmp_path)()
    commands = TiltCommands(node, DRONE)
    pilot = TiltPilot(commands.arbiter, DRONE, hovers=False)
    to_command = partial(command_from_shares, signs=Signs())
    session = ControllerSession(pilot, to_command, PARAMETERS.__getitem__, AllowedPeers(["any"]))
    port = DatagramPort("127.0.0.1", 0)
    stage = SimpleNamespace(publish=lambda _: None, note=lambda note: None, turned=lambda: None)
    clock = SimpleNamespace(now_s=lambda: node.now_s)
    loop = LinkLoop("test", port, session, stage, clock, intake=node.intake)
    try:
        session.receive(json.dumps(drone()).encode(), peer.getsockname(), node.now_s)
        node.intake.opened()
        node.take["cmd_vel"](twist(up=1.0))  # what is looked up once
        node.posted.pop()(node.now_s)
        node.now_s += 1 / PARAMETERS["rate"]
        node.waiting["cmd_vel"].append(twist(up=1.0))
        with Trace() as trace:
            loop._tick()
        assert json.loads(peer.recv(1000))["thrust"] > 0.0
    finally:
        port.close()
    handing_on = trace.handing_on()
    assert {"link_loop._tick", "command_topics.receive", "arbiter.put", "datagram_link.send"} <= set(handing_on)
    assert len(handing_on) <= MAX_HANDING_ON, handing_on
