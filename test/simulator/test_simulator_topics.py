# SPDX-License-Identifier: Apache-2.0
"""SimulatorTopics: published states, transforms and events of simulator_bridge."""

import copy

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.simulator_topics import SimulatorTopics
from drone_bridge.simulator.session.events import (
    CameraPlaced,
    ClockTime,
    ConnectionStarted,
    PublishedScene,
    SimulatorEvent,
    States,
)

VEHICLE, BUOY = 0, 1
PARAMETERS = {
    **{"publish_clock": False, "stamp_source": "ros"},
    **{"publish_tf": True, "publish_map_to_odom": True, "frame_prefix": ""},
    **{"map_frame": "map", "odom_frame": "odom", "base_frame": "base_link"},
}


class Node:
    """Node that converts each message when it is published, like rclpy."""

    def __init__(self, subscribed, **parameters):
        self.parameters, self.decided_s, self._seconds = {**PARAMETERS, **parameters}, 0.0, 0
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

    def last(self, topic):
        """Return the newest message on a topic."""
        return [message for together in self.published for name, message in together if name == topic][-1]

    def destroy_publisher(self, publisher):
        self.destroyed.append(publisher)

    def publish_all(self, messages):
        self.published.append(copy.deepcopy(list(messages)))


@pytest.fixture(autouse=True)
def no_restarts(monkeypatch):
    monkeypatch.setattr("drone_bridge.ros.topics.topic_publishers.report_restarts", id)


def made(node, frames=None):
    outputs = SimulatorTopics(node, VEHICLE, frames or FrameNames())
    do(outputs, PublishedScene({VEHICLE: "vehicle", BUOY: "buoy"}, frozenset({"front"})))
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


def test_messages_of_a_step_have_one_stamp():
    node = Node(["odom"])
    outputs = made(node)
    view = SimulatorEvent(sim.CameraData(0, 0.25, -0.5, 0.125, 4.0), "buoy", (0, "front", BUOY))
    for step in (1, 2):
        do(outputs, ClockTime(step * 10_000_000, False))
        do(outputs, States(((VEHICLE, state(0.0)),)))
        do(outputs, view)
    node.decided_s = 1.0
    do(outputs, view)
    seen = [(topic, message.header.stamp.sec) for together in node.published for topic, message in together]
    assert seen == [("odom", 1), ("camera_view", 1), ("odom", 2), ("camera_view", 2), ("camera_view", 3)]


def placed(node):
    """Return the newest static transforms by child frame."""
    (message,) = [message for topic, message in node.published[-1] if topic == "/tf_static"]
    return {
        each.child_frame_id: (each.header.frame_id, each.transform.translation.x, each.transform.translation.z)
        for each in message.transforms
    }


def test_frames_of_cameras_exist_until_their_cameras_are_removed():
    node = Node([])
    outputs = made(node)
    do(outputs, ConnectionStarted(True))
    do(outputs, CameraPlaced("front", sim.AddCamera(VEHICLE, (1.0, 0.0, 0.0, 0.0), (0.3, 0.0, 1.0), 1.0)))
    assert placed(node) == {"odom": ("map", 0.0, 0.0), "front": ("base_link", 0.3, -1.0)}
    do(outputs, CameraPlaced("front", sim.AddCamera(BUOY, (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0)))
    assert placed(node)["front"] == ("buoy", 0.0, 0.0)
    do(outputs, PublishedScene({VEHICLE: "vehicle"}, frozenset()))
    do(outputs, ConnectionStarted(False))
    assert placed(node) == {"odom": ("map", 0.0, 0.0)}


def test_topics_follow_added_and_removed_entities():
    node = Node(["entities/buoy/pose", "entities/gate/pose"])
    outputs = made(node)
    do(outputs, PublishedScene({VEHICLE: "vehicle", 7: "gate"}, frozenset()))
    assert node.destroyed == ["entities/buoy/pose", "entities/buoy/twist"]
    node.published.clear()
    do(outputs, States(((BUOY, state(1.0)), (7, state(2.0)))))
    assert [[topic for topic, _ in together] for together in node.published] == [["entities/gate/pose"]]


def test_events_have_the_names_of_their_ids():
    node = Node([])
    outputs = made(node, FrameNames(frame_prefix="s1/"))
    do(outputs, SimulatorEvent(sim.CameraData(0, 0.25, -0.5, 0.125, 4.0), "buoy", (0, "front", BUOY)))
    view = node.last("camera_view")
    assert (view.camera, view.camera_id, view.target, view.target_id) == ("front", 0, "buoy", BUOY)
    assert (view.x, view.y, view.radius, view.depth, view.visible) == (0.25, -0.5, 0.125, 4.0, True)
    assert view.header.frame_id == "s1/front"
    do(outputs, SimulatorEvent(sim.PathFailed(3), "near"))
    event = node.last("trigger_events")
    assert (event.name, event.trigger_id, event.event) == ("near", 3, sim.PathFailed.ID)
    do(outputs, SimulatorEvent(sim.Spied(True, sim.ItemType.ENTITY, 7), "gate"))
    event = node.last("item_events")
    assert (event.added, event.type, event.id, event.name) == (True, event.ENTITY, 7, "gate")


def test_frames_of_entities_have_the_prefix():
    node = Node(["odom", "entities/buoy/pose", "entities/buoy/twist", "/tf"])
    do(made(node, FrameNames(frame_prefix="s1/")), States(((VEHICLE, state(1.0)), (BUOY, state(2.0)))))
    assert (node.last("odom").header.frame_id, node.last("odom").child_frame_id) == ("s1/odom", "s1/base_link")
    assert node.last("entities/buoy/pose").header.frame_id == "s1/odom"
    assert node.last("entities/buoy/twist").header.frame_id == "s1/buoy"
    transforms = [(each.header.frame_id, each.child_frame_id) for each in node.last("/tf").transforms]
    assert transforms == [("s1/odom", "s1/base_link"), ("s1/odom", "s1/buoy")]


def test_the_simulated_time_is_published_when_it_is_due_and_stamps_with_it():
    node = Node(["odom"], publish_clock=True)
    outputs = made(node)
    do(outputs, ClockTime(1_250_000_000, True))
    do(outputs, ClockTime(2_500_000_000, False))
    do(outputs, States(((VEHICLE, state(0.0)),)))
    assert node.last("/clock").clock == Time(sec=1, nanosec=250_000_000)
    assert node.last("odom").header.stamp == Time(sec=2, nanosec=500_000_000)


def test_only_a_new_simulation_is_announced():
    node = Node([])
    outputs = made(node)
    for is_new in (True, False):
        do(outputs, ConnectionStarted(is_new))
    topics = [topic for together in node.published for topic, _ in together]
    assert topics.count("simulation_started") == 1
    assert node.last("simulation_started").sec > 0
