# SPDX-License-Identifier: Apache-2.0
"""Views for rviz2, compared with what the launch file of the same name really publishes. No rviz2 is needed."""

import re
from pathlib import Path

import pytest
import yaml
from composition import launch
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_session import wait_until
from tf2_msgs.msg import TFMessage

VIEWS = sorted((Path(__file__).parent.parent / "rviz").glob("*.rviz"))
# What a composition needs to be told so that it publishes all that its view shows.
COMPLETE = {
    "testbed": {"attitude_layout": "pose", "width": 64, "height": 64},
    "robot": {"publish_odometry": True},
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
    "rviz_default_plugins/TF": None,
    "rviz_default_plugins/TwistStamped": "geometry_msgs/msg/TwistStamped",
}
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

each_view = pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.stem)


def manager(path):
    return yaml.safe_load(path.read_text())["Visualization Manager"]


def launch_text(path):
    return (path.parent.parent / "launch" / f"{path.stem}.launch.xml").read_text()


def with_topics(path):
    """The displays that subscribe to something."""
    return [display for display in manager(path)["Displays"] if DISPLAYS[display["Class"]]]


@each_view
def test_a_view_consists_of_what_every_rviz2_has(path):
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
    for display in with_topics(path):
        for name, value in display["Topic"].items():
            allowed = TOPIC_PROPERTIES[name]
            assert isinstance(value, allowed) if isinstance(allowed, type) else value in allowed, display["Name"]


@each_view
def test_a_view_shows_what_the_launch_file_of_its_name_publishes(path, ros, free_port):
    """In a namespace and with prefixed frames, which relative topics and the launch file's -f have to follow."""
    expected = {f"/{NAMESPACE}/{display['Topic']['Value']}": display for display in with_topics(path)}
    assert not any("//" in topic for topic in expected), "relative topics, so that they follow the namespace"
    frames = Frames(ros)
    prefix = f"{NAMESPACE}/"
    ports = {name: free_port for name in ("port", "discovery_port") if f'<arg name="{name}"' in launch_text(path)}
    arguments = {"emulate": True, "namespace": NAMESPACE, "frame_prefix": prefix, **ports}
    with launch(f"{path.stem}.launch.xml", **arguments, **COMPLETE.get(path.stem, {})):
        wait_until(lambda: all(map(ros.node.get_publishers_info_by_topic, expected)), f"publishers of {set(expected)}")
        for topic, display in expected.items():
            for publisher in ros.node.get_publishers_info_by_topic(topic):
                assert publisher.topic_type == DISPLAYS[display["Class"]], topic
                assert_compatible(display["Topic"], publisher.qos_profile, topic)
        # The frame that the launch file tells rviz2 to stand in comes with the transforms.
        wait_until(lambda: fixed_frame(path, prefix) in frames.known, f"the frame {fixed_frame(path, prefix)}")


def assert_compatible(wanted, offered, topic):
    """What a reader wants must not be more than the writer offers."""
    reliability = RELIABILITIES[wanted.get("Reliability Policy", "Reliable")]  # what rviz2 takes when it is not said
    durability = DURABILITIES[wanted.get("Durability Policy", "Volatile")]
    assert reliability != ReliabilityPolicy.RELIABLE or offered.reliability == reliability, topic
    assert durability != DurabilityPolicy.TRANSIENT_LOCAL or offered.durability == durability, topic


def fixed_frame(path, prefix):
    """The frame after rviz2's -f in the launch file, or that of the view."""
    text = launch_text(path)
    given = re.search(r"rviz2.*\n?.* -f \$\(var frame_prefix\)(\w+|\$\(var (\w+)\$\(var (\w+)\)\))\"", text)
    assert given, "with a prefix, the frame of the view is another one: -f has to say it"
    if given[2] is None:
        return prefix + given[1]
    value = COMPLETE[path.stem][given[3]]
    return prefix + re.search(rf'<let name="{given[2]}{value}" value="(\w+)"/>', text)[1]


class Frames:
    """The names of the frames that transforms speak of."""

    def __init__(self, ros):
        self.known = set()
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        ros.node.create_subscription(TFMessage, "/tf", self._take, 100)
        ros.node.create_subscription(TFMessage, "/tf_static", self._take, latched)

    def _take(self, message):
        for transform in message.transforms:
            self.known |= {transform.header.frame_id, transform.child_frame_id}
