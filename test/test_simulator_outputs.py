# SPDX-License-Identifier: Apache-2.0
"""What simulator_bridge publishes of streamed states: each of them, with the transforms of a step together."""

import copy
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.ros.frames import FrameNames
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs
from drone_bridge.simulator.session.published import Begun, CameraPlaced, Reported, Scene, States
from drone_bridge.simulator.session.published import Time as SimulatedTime
from drone_bridge.simulator.topics import Axes

VEHICLE, BUOY = 0, 1
PARAMETERS = {
    **{"publish_clock": False, "stamp_source": "ros"},
    **{"publish_tf": True, "publish_map_to_odom": True, "frame_prefix": ""},
    **{"map_frame": "map", "odom_frame": "odom", "base_frame": "base_link"},
}


class Node:
    """Converts each message when it is published, as rclpy does."""

    def __init__(self, subscribed):
        self.parameters, self.decided_s, self._seconds = PARAMETERS, 0.0, 0
        self.observed = SimpleNamespace(measured=lambda *_: None)
        self.published, self.destroyed = [], []
        self._subscribed = subscribed

    def make_publisher(self, kind, topic, qos):
        return topic

    def create_publisher(self, kind, topic, qos, event_callbacks):
        return topic

    def is_wanted(self, topic):
        return topic in self._subscribed

    def now(self):
        self._seconds += 1
        return Time(sec=self._seconds)

    def publish(self, publisher, message):
        self.published.append([(publisher, copy.deepcopy(message))])

    def destroy_publisher(self, publisher):
        self.destroyed.append(publisher)

    def publish_all(self, messages):
        self.published.append(copy.deepcopy(list(messages)))


def made(node):
    outputs = SimulatorOutputs(node, Axes(), VEHICLE, FrameNames())
    do(outputs, Scene({VEHICLE: "vehicle", BUOY: "buoy"}, frozenset({"front"})))
    return outputs


def do(outputs, message):
    outputs.handlers[type(message)](message)


def state(north):
    return ((north, 0.0, 0.0), (0.0,) * 3, (0.0,) * 3, (1.0, 0.0, 0.0, 0.0), (0.0,) * 3)


@pytest.mark.parametrize("tf", [(), ("/tf",)])
def test_steps_that_are_read_together_are_published_one_by_one(tf):
    node = Node(["odom", "entities/buoy/pose", *tf])
    outputs = made(node)
    for step in (1.0, 2.0):
        do(outputs, States(((VEHICLE, state(step)), (BUOY, state(10.0 * step)))))
    seen = []
    for together in node.published:
        topics = dict(together)
        seen.append((topics["odom"].pose.pose.position.y, topics["entities/buoy/pose"].pose.position.y))
        moved = topics["/tf"].transforms if tf else []
        assert [(each.child_frame_id, each.transform.translation.y) for each in moved] == list(
            zip(["base_link", "buoy"], seen[-1], strict=True)
        )[: len(tf) * 2]
    assert seen == [(1.0, 10.0), (2.0, 20.0)]


def test_what_comes_of_a_step_together_has_one_stamp():
    node = Node(["odom"])
    outputs = made(node)
    view = Reported(sim.CameraData(0, 0.25, -0.5, 0.125, 4.0), "buoy", (0, "front", BUOY))
    for step in (1, 2):
        do(outputs, SimulatedTime(step * 10_000_000, False))
        do(outputs, States(((VEHICLE, state(0.0)),)))
        do(outputs, view)
    node.decided_s = 1.0
    do(outputs, view)
    seen = [(topic, message.header.stamp.sec) for together in node.published for topic, message in together]
    assert seen == [("odom", 1), ("camera_view", 1), ("odom", 2), ("camera_view", 2), ("camera_view", 3)]


def placed(node):
    """Return the newest static transforms: where each is on its parent."""
    (message,) = [message for topic, message in node.published[-1] if topic == "/tf_static"]
    return {
        each.child_frame_id: (each.header.frame_id, each.transform.translation.x, each.transform.translation.z)
        for each in message.transforms
    }


def test_frames_of_cameras_are_where_these_are_until_they_are_gone():
    node = Node([])
    outputs = made(node)
    do(outputs, Begun(True))
    do(outputs, CameraPlaced("front", sim.AddCamera(VEHICLE, (1.0, 0.0, 0.0, 0.0), (0.3, 0.0, 1.0), 1.0)))
    assert placed(node) == {"odom": ("map", 0.0, 0.0), "front": ("base_link", 0.3, -1.0)}
    do(outputs, CameraPlaced("front", sim.AddCamera(BUOY, (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0)))
    assert placed(node)["front"] == ("buoy", 0.0, 0.0)
    do(outputs, Scene({VEHICLE: "vehicle"}, frozenset()))
    do(outputs, Begun(False))
    assert placed(node) == {"odom": ("map", 0.0, 0.0)}


def test_who_is_gone_has_no_topics_and_who_comes_has():
    node = Node(["entities/buoy/pose", "entities/gate/pose"])
    outputs = made(node)
    do(outputs, Scene({VEHICLE: "vehicle", 7: "gate"}, frozenset()))
    assert node.destroyed == ["entities/buoy/pose", "entities/buoy/twist"]
    node.published.clear()
    do(outputs, States(((BUOY, state(1.0)), (7, state(2.0)))))
    assert [[topic for topic, _ in together] for together in node.published] == [["entities/gate/pose"]]
