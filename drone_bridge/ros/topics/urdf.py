# SPDX-License-Identifier: Apache-2.0
"""URDF of a vehicle for ROS: prefixed frames, and fixed joints as transforms."""

from xml.etree.ElementTree import Element

from geometry_msgs.msg import TransformStamped

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.topics.transforms import transform


def put_before_frames(description: Element, prefix: str) -> None:
    """Prefix the names of all links and joints."""
    for element in description.iter():
        if element.tag in ("link", "joint"):
            element.set("name", prefix + element.get("name", ""))
        elif element.tag in ("parent", "child"):
            element.set("link", prefix + element.get("link", ""))


def fixed_transforms(description: Element) -> list[TransformStamped]:
    """Return the transforms of all fixed joints, without stamps."""
    transforms = []
    for joint in description.iter("joint"):
        parent, child, origin = joint.find("parent"), joint.find("child"), joint.find("origin")
        if joint.get("type") != "fixed" or parent is None or child is None:
            continue
        place = origin.attrib if origin is not None else {}
        translation = _three(place.get("xyz", "0 0 0"))
        rotation = quaternion_from_euler(*_three(place.get("rpy", "0 0 0")))
        transforms.append(transform(parent.get("link", ""), child.get("link", ""), translation, rotation))
    return transforms


def _three(text: str) -> tuple[float, float, float]:
    x, y, z = map(float, text.split())
    return x, y, z
