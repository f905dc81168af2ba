# SPDX-License-Identifier: Apache-2.0
"""What simulator_bridge publishes of streamed states: each of them, with the transforms of a step together."""

import copy
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.simulator.bridge.desired_items import DesiredItems
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs, TimeKeeper
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
        self.parameters = PARAMETERS
        self.observed = SimpleNamespace(measured=lambda *_: None)
        self.published = []
        self._subscribed = subscribed

    def make_publisher(self, kind, topic, qos):
        return topic

    def create_publisher(self, kind, topic, qos, event_callbacks):
        return topic

    def is_wanted(self, topic):
        return topic in self._subscribed

    def now(self):
        return Time(sec=1)

    def publish_all(self, messages):
        self.published.append(copy.deepcopy(list(messages)))


def state(north):
    return ((north, 0.0, 0.0), (0.0,) * 3, (0.0,) * 3, (1.0, 0.0, 0.0, 0.0), (0.0,) * 3)


@pytest.mark.parametrize("tf", [(), ("/tf",)])
def test_steps_that_are_read_together_are_published_one_by_one(tf):
    node = Node(["odom", "entities/buoy/pose", *tf])
    outputs = SimulatorOutputs(node, Axes(), TimeKeeper(node), VEHICLE, DesiredItems())
    outputs.name_entity(BUOY, "buoy")
    outputs.open_entity(BUOY)
    for step in (1.0, 2.0):
        outputs.publish_state(VEHICLE, state(step))
        outputs.publish_state(BUOY, state(10.0 * step))
    outputs.flush()
    seen = []
    for together in node.published:
        topics = dict(together)
        seen.append((topics["odom"].pose.pose.position.y, topics["entities/buoy/pose"].pose.position.y))
        moved = topics["/tf"].transforms if tf else []
        assert [(each.child_frame_id, each.transform.translation.y) for each in moved] == list(
            zip(["base_link", "buoy"], seen[-1], strict=True)
        )[: len(tf) * 2]
    assert seen == [(1.0, 10.0), (2.0, 20.0)]
