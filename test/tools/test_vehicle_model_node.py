# SPDX-License-Identifier: Apache-2.0
"""vehicle_model as a node: published messages and refused parameters."""

from xml.etree import ElementTree

from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def test_the_description_is_latched(ros):
    with Process.node("vehicle_model", model="rover", frame_prefix="r1/") as process:
        first = ros.subscribe(String, "robot_description", LATCHED).wait()
        again = ros.subscribe(String, "robot_description", LATCHED).wait()
        assert first == again
        root = ElementTree.fromstring(first.data)
        assert root.get("name") == "rover"
        assert [link.get("name") for link in root.findall("link")] == ["r1/base_link", "r1/chassis"]
        (transform,) = ros.subscribe(TFMessage, "/tf_static", LATCHED).wait().transforms
        assert (transform.header.frame_id, transform.child_frame_id) == ("r1/base_link", "r1/chassis")
        assert transform.transform.translation.z == 0.12
        (refused,) = ros.set_parameters("vehicle_model", model="submarine")
        assert not refused.successful
        assert process.stop() == 0
