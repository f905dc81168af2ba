# SPDX-License-Identifier: Apache-2.0
"""The views of rviz2, as they are on disk."""

import pytest
import yaml
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from repository import ROOT

VIEWS = sorted((ROOT / "rviz").glob("*.rviz"))

# From plugins_description.xml of rviz_default_plugins, as far as Humble, Jazzy and Kilted all have it;
# of the displays, which type of message each shows, None for those without a topic.
DISPLAYS = {
    "rviz_default_plugins/Axes": None,
    "rviz_default_plugins/Grid": None,
    "rviz_default_plugins/Image": "sensor_msgs/msg/Image",
    "rviz_default_plugins/Odometry": "nav_msgs/msg/Odometry",
    "rviz_default_plugins/RobotModel": "std_msgs/msg/String",
    "rviz_default_plugins/TF": None,
}
# Where a display says its topic, other than under Topic.
TOPICS = {"rviz_default_plugins/RobotModel": "Description Topic"}
RELIABILITIES = {"Reliable": ReliabilityPolicy.RELIABLE, "Best Effort": ReliabilityPolicy.BEST_EFFORT}
DURABILITIES = {"Volatile": DurabilityPolicy.VOLATILE, "Transient Local": DurabilityPolicy.TRANSIENT_LOCAL}

each_view = pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.stem)


def manager(path):
    return yaml.safe_load(path.read_text())["Visualization Manager"]


def with_topics(path):
    """The displays that subscribe to something, each with how it says its topic."""
    displays = [display for display in manager(path)["Displays"] if DISPLAYS[display["Class"]]]
    return [(display, display[TOPICS.get(display["Class"], "Topic")]) for display in displays]
