# SPDX-License-Identifier: Apache-2.0
"""Commands of telemetry_server's operator on a topic, without DDS."""

import json
from types import SimpleNamespace

import pytest
from std_msgs.msg import String
from telemetry_documents import HOVER

from drone_bridge.telemetry.vehicle.server import TelemetryServer

FORWARD = {**HOVER, "pitch": 0.5}


@pytest.mark.parametrize(
    ("text", "passes"),
    [(json.dumps(HOVER), True), (json.dumps(FORWARD), False), ('{"thrust": 0.0}', False), ("?", False)],
)
def test_right_after_a_stall_only_a_neutral_command_reaches_the_session(text, passes):
    posted = []
    session = SimpleNamespace(receive=print)
    server = SimpleNamespace(_session=session, takes_commands=lambda: False, post=posted.append)
    TelemetryServer._take_text(server, String(data=text))
    assert bool(posted) == passes
