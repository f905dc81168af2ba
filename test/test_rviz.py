# SPDX-License-Identifier: Apache-2.0
"""Views for rviz2, compared with what the launch file of the same name really publishes.

No rviz2 is needed: a program that only says how it was started stands in for it.
"""

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from composition import launch
from launch_package import make_rviz2
from ports import free_port
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_session import wait_until
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from drone_bridge.tools.interfaces import import_interface

VIEWS = sorted((Path(__file__).parent.parent / "rviz").glob("*.rviz"))
# What a composition needs to be told so that it publishes all that its view shows.
COMPLETE = {
    "testbed": {"attitude_layout": "pose", "testbed_image_width": 64, "testbed_image_height": 64},
}
NAMESPACE = "r1"

# From plugins_description.xml of rviz_default_plugins and rviz_common, as far as Humble, Jazzy and Kilted all have it;
# of the displays, which type of message each shows, None for those without a topic.
DISPLAYS = {
    "rviz_default_plugins/Axes": None,
    "rviz_default_plugins/Camera": "sensor_msgs/msg/Image",
    "rviz_default_plugins/Grid": None,
    "rviz_default_plugins/Image": "sensor_msgs/msg/Image",
    "rviz_default_plugins/Marker": "visualization_msgs/msg/Marker",
    "rviz_default_plugins/MarkerArray": "visualization_msgs/msg/MarkerArray",
    "rviz_default_plugins/Odometry": "nav_msgs/msg/Odometry",
    "rviz_default_plugins/Path": "nav_msgs/msg/Path",
    "rviz_default_plugins/PointCloud2": "sensor_msgs/msg/PointCloud2",
    "rviz_default_plugins/Pose": "geometry_msgs/msg/PoseStamped",
    "rviz_default_plugins/PoseWithCovariance": "geometry_msgs/msg/PoseWithCovarianceStamped",
    "rviz_default_plugins/Range": "sensor_msgs/msg/Range",
    "rviz_default_plugins/RobotModel": "std_msgs/msg/String",
    "rviz_default_plugins/TF": None,
    "rviz_default_plugins/TwistStamped": "geometry_msgs/msg/TwistStamped",
}
# Where a display says its topic, other than under Topic.
TOPICS = {"rviz_default_plugins/RobotModel": "Description Topic"}
PANELS = {f"rviz_common/{name}" for name in ("Displays", "Selection", "Time", "Tool Properties", "Views")}
TOOLS = {
    f"rviz_default_plugins/{name}"
    for name in (
        "FocusCamera",
        "Interact",
        "Measure",
        "MoveCamera",
        "PublishPoint",
        "Select",
        "SetGoal",
        "SetInitialPose",
    )
}
VIEW_CONTROLLERS = {
    f"rviz_default_plugins/{name}" for name in ("FPS", "Orbit", "ThirdPersonFollower", "TopDownOrtho", "XYOrbit")
}
RELIABILITIES = {"Reliable": ReliabilityPolicy.RELIABLE, "Best Effort": ReliabilityPolicy.BEST_EFFORT}
DURABILITIES = {"Volatile": DurabilityPolicy.VOLATILE, "Transient Local": DurabilityPolicy.TRANSIENT_LOCAL}
TOPIC_PROPERTIES = {
    "Value": str,
    "Depth": int,
    "History Policy": ("Keep Last", "Keep All"),
    "Reliability Policy": tuple(RELIABILITIES),
    "Durability Policy": tuple(DURABILITIES),
    "Filter size": int,
}

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)

each_view = pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.stem)


def manager(path):
    return yaml.safe_load(path.read_text())["Visualization Manager"]


def launch_text(path):
    return (path.parent.parent / "launch" / f"{path.stem}.launch.xml").read_text()


def with_topics(path):
    """The displays that subscribe to something, each with how it says its topic."""
    displays = [display for display in manager(path)["Displays"] if DISPLAYS[display["Class"]]]
    return [(display, display[TOPICS.get(display["Class"], "Topic")]) for display in displays]


def test_every_launch_file_has_its_view():
    launch_files = set((VIEWS[0].parent.parent / "launch").glob("*.launch.xml"))
    names = {path.name.removesuffix(".launch.xml") for path in launch_files}
    servers = {name for name in names if name.endswith("_server")}  # their topics are those of their bridges
    assert len(servers) == 5
    assert {path.stem for path in VIEWS} == names - servers


@each_view
def test_views_use_only_what_every_rviz2_has(path):
    content = yaml.safe_load(path.read_text())
    assert content.keys() <= {"Panels", "Visualization Manager", "Window Geometry"}
    assert {panel["Class"] for panel in content["Panels"]} <= PANELS
    displays = manager(path)["Displays"]
    assert {display["Class"] for display in displays} <= DISPLAYS.keys()
    assert {tool["Class"] for tool in manager(path)["Tools"]} <= TOOLS
    assert manager(path)["Views"]["Current"]["Class"] in VIEW_CONTROLLERS
    names = [display["Name"] for display in displays]
    assert len(set(names)) == len(names)


@each_view
def test_a_view_spells_topics_and_their_qos_as_rviz2_reads_them(path):
    for display, topic in with_topics(path):
        for name, value in topic.items():
            allowed = TOPIC_PROPERTIES[name]
            assert isinstance(value, allowed) if isinstance(allowed, type) else value in allowed, display["Name"]
        if "RobotModel" in display["Class"]:
            # The launch file puts the prefix into the model itself, as it can't put it into the view.
            assert (display["Description Source"], display.get("TF Prefix", "")) == ("Topic", "")


@each_view
def test_a_view_shows_what_the_launch_file_of_its_name_publishes(path, ros, tmp_path, monkeypatch):
    """In a namespace and with prefixed frames, which relative topics and the launch file's -f have to follow."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{make_rviz2(tmp_path)}{os.pathsep}{os.environ['AMENT_PREFIX_PATH']}")
    expected = {f"/{NAMESPACE}/{topic['Value']}": (display, topic) for display, topic in with_topics(path)}
    assert not any("//" in topic for topic in expected), "relative topics, so that they follow the namespace"
    frames = Frames(ros)
    ports = {name: free_port() for name in re.findall(r'<arg name="((?:\w+_)?port)"', launch_text(path))}
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
    """The frames that what comes on a topic speaks of."""
    if "RobotModel" in display["Class"]:
        model = ElementTree.fromstring(ros.subscribe(String, topic, LATCHED).wait().data)
        return {link.get("name") for link in model.iter("link")}
    return {ros.subscribe(import_interface(DISPLAYS[display["Class"]]), topic).wait().header.frame_id}


class Frames:
    """What transforms say of frames."""

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
        """The frames of its tree, none as long as there is no transform of it."""
        neighbours, found, left = self._neighbours, set(), [frame]
        while left:
            known = neighbours.get(left.pop(), set())
            left += known - found
            found |= known
        return found
