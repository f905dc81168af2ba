# SPDX-License-Identifier: Apache-2.0
"""Each view of rviz2 shows topics and frames that the launch file of its name publishes."""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from composition import launch
from launch_package import make_rviz2
from ports import free_port
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_session import wait_until
from rviz_views import DISPLAYS, DURABILITIES, RELIABILITIES, each_view, with_topics
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from drone_bridge.tools.demo.composition import ports_of
from drone_bridge.tools.shared.interfaces import import_interface

pytestmark = pytest.mark.exhaustive

# Arguments with which a launch file publishes all topics of its view.
COMPLETE = {"testbed": {"attitude_layout": "pose", "testbed_image_width": 64, "testbed_image_height": 64}}
NAMESPACE = "r1"

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@each_view
def test_a_view_shows_what_the_launch_file_of_its_name_publishes(path, ros, tmp_path, monkeypatch):
    """In a namespace and with prefixed frames, which relative topics and the launch file's -f have to follow."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{make_rviz2(tmp_path)}{os.pathsep}{os.environ['AMENT_PREFIX_PATH']}")
    expected = {f"/{NAMESPACE}/{topic['Value']}": (display, topic) for display, topic in with_topics(path)}
    assert not any("//" in topic for topic in expected), "relative topics, so that they follow the namespace"
    frames = Frames(ros)
    ports = {name: free_port() for name in ports_of(f"{path.stem}.launch.xml")}
    arguments = {"emulate": True, "rviz": True, "namespace": NAMESPACE, "frame_prefix": f"{NAMESPACE}/", **ports}
    with launch(f"{path.stem}.launch.xml", **arguments, **COMPLETE.get(path.stem, {})) as composition:
        opened = composition.wait_for_line(rf"opened with -d (\S+) -f ({NAMESPACE}/\S+) .*__ns:=/{NAMESPACE}\b")
        assert Path(opened[1]).read_bytes() == path.read_bytes()  # a copy, where it was installed without links
        wait_until(lambda: all(map(ros.node.get_publishers_info_by_topic, expected)), f"publishers of {set(expected)}")
        for topic, (display, wanted) in expected.items():
            for publisher in ros.node.get_publishers_info_by_topic(topic):
                assert publisher.topic_type == DISPLAYS[display["Class"]], topic
                assert_compatible(wanted, publisher.qos_profile, topic)
        # From where rviz2 stands, the links of the models can be seen, and the frames that messages are in.
        needed = {opened[2]}.union(*(frames_in(ros, topic, display) for topic, (display, _) in expected.items()))
        wait_until(lambda: needed <= frames.connected_to(opened[2]), f"a tree with the frames {needed}")


def assert_compatible(wanted, offered, topic):
    """What a reader wants must not be more than the writer offers."""
    reliability = RELIABILITIES[wanted.get("Reliability Policy", "Reliable")]  # what rviz2 takes when it is not said
    durability = DURABILITIES[wanted.get("Durability Policy", "Volatile")]
    assert reliability != ReliabilityPolicy.RELIABLE or offered.reliability == reliability, topic
    assert durability != DurabilityPolicy.TRANSIENT_LOCAL or offered.durability == durability, topic


def frames_in(ros, topic, display):
    """Return the frames in the messages of a topic."""
    if "RobotModel" in display["Class"]:
        model = ElementTree.fromstring(ros.subscribe(String, topic, LATCHED).wait().data)
        return {link.get("name") for link in model.iter("link")}
    return {ros.subscribe(import_interface(DISPLAYS[display["Class"]]), topic).wait().header.frame_id}


class Frames:
    """Tree of frames from transforms."""

    def __init__(self, ros):
        self._neighbours = {}
        ros.node.create_subscription(TFMessage, "/tf", self._take, 100)
        ros.node.create_subscription(TFMessage, "/tf_static", self._take, LATCHED)

    def _take(self, message):
        for transform in message.transforms:
            parent, child = transform.header.frame_id, transform.child_frame_id
            self._neighbours = {
                **self._neighbours,
                parent: self._neighbours.get(parent, set()) | {child},
                child: self._neighbours.get(child, set()) | {parent},
            }

    def connected_to(self, frame):
        """Return the frames of a frame's tree; none without transforms."""
        neighbours, found, left = self._neighbours, set(), [frame]
        while left:
            known = neighbours.get(left.pop(), set())
            left += known - found
            found |= known
        return found
