# SPDX-License-Identifier: Apache-2.0
"""One bridge's log is the next one's robot: its topics have what is in the file, by a decoder of the test's."""

import re

import pytest
from geometry_msgs.msg import PointStamped
from mcap.reader import make_reader
from ports import free_ports
from processes import Process, executable
from ros_session import wait_until

pytestmark = pytest.mark.exhaustive

#: Heights on the wire, and the unit of each kind.
HEIGHT, METRES = re.compile(rb'"altitude": ?(-?[\d.]+)'), {"telemetry": 1.0, "dronegui": 0.001}
LEAST = 10


def heights(topic):
    """Return the different heights that were received on a topic, mm."""
    return {round(1000 * topic.wait().point.z) for _ in range(len(topic))}


@pytest.mark.parametrize("kind", METRES)
def test_a_replayed_flight_has_the_heights_of_the_log(kind, ros, start_child, tmp_path):
    ports = dict(zip(("port", "navdata_port"), free_ports(2 if kind == "dronegui" else 1), strict=False))
    options = [word for name, port in ports.items() for word in (f"--{name.replace('_', '-')}", str(port))]
    robot = executable("drone-bridge"), "emulate", kind, *options
    quiet = {"video_port": 0} if kind == "dronegui" else {}
    here = ("--no-video", "--bootstrapped", "--navdata-source-port", "0") if quiet else ()
    live = ros.subscribe(PointStamped, "height")
    emulator = start_child(*robot, *here)
    with Process.node(f"{kind}_bridge", **ports, **quiet, wire_log=tmp_path) as bridge:
        live.wait()
        if kind == "dronegui":
            wait_until(lambda: ros.trigger("dronegui_bridge/takeoff").success, "a takeoff")
        wait_until(lambda: len(live) > 10 * LEAST, "a flight")
        assert bridge.stop() == 0
    emulator.stop()
    (log,) = tmp_path.glob("*.mcap")
    with log.open("rb") as file:
        sent = b"".join(each.data for _, _, each in make_reader(file).iter_messages())
    known = {round(1000 * METRES[kind] * float(text)) for text in HEIGHT.findall(sent)}
    assert len(known) >= LEAST

    replayed, found = ros.subscribe(PointStamped, "height"), set()
    start_child(*robot, "--replay", log)
    with Process.node(f"{kind}_bridge", **ports, **quiet) as bridge:
        wait_until(lambda: found.update(heights(replayed)) or len(found) >= LEAST, "the flight again")
        assert bridge.stop() == 0
    assert found <= known
