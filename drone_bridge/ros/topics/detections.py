# SPDX-License-Identifier: Apache-2.0
"""DetectedObject: a detection in an image; detections to messages and back."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from builtin_interfaces.msg import Time

from drone_bridge.msg import Detection, DetectionArray


class DetectedObject(NamedTuple):
    """Detection, by its centre and size, shares of the image, and its distance, m."""

    x: float  # from the left edge
    y: float  # from the upper edge
    width: float
    height: float
    distance: float | None = None


def detection_array(found: Iterable[DetectedObject], frame_id: str, stamp: Time) -> DetectionArray:
    """Return the current detections as a message."""
    message = DetectionArray(detections=[_detection(each) for each in found])
    message.header.stamp, message.header.frame_id = stamp, frame_id
    return message


def found_in(message: DetectionArray) -> list[DetectedObject]:
    """Return the detections of a message, also those with invalid numbers."""
    return [
        DetectedObject(each.center_x, each.center_y, each.width, each.height, each.distance)
        for each in message.detections
    ]


def _detection(found: DetectedObject) -> Detection:
    return Detection(
        center_x=found.x,
        center_y=found.y,
        width=found.width,
        height=found.height,
        distance=math.nan if found.distance is None else found.distance,
    )
