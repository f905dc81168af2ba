# SPDX-License-Identifier: Apache-2.0
"""BodyToModel: rotation between a rigid body's principal axes and its model. Quaternions are w, x, y, z."""

import math
from collections.abc import Sequence

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion, conjugate, multiply, rotate

_LARGEST_NORM_ERROR = 0.01  # tolerance for the length of a rotation's quaternion


class BodyToModel:
    """Rotation from an entity's principal axes, the reference of q on the wire, to its model, the reference in ROS.

    On the wire, w, ESET q and cameras refer to the model already.
    """

    def __init__(self, rotation: Sequence[float] = IDENTITY) -> None:
        """`rotation` is btom of the protocol: w, x, y, z. Raises ValueError unless it is a rotation."""
        self.rotation = unit_rotation(rotation)
        self.is_identity = max(map(abs, self.rotation[1:])) < 1e-12  # w alone can't resolve angles below 1e-6 rad

    def model(self, q: Sequence[float]) -> WxyzQuaternion:
        """Return the orientation of the model for q on the wire: w, x, y, z. Raises ValueError."""
        body = unit_rotation(q)
        return body if self.is_identity else multiply(body, conjugate(self.rotation))

    def body(self, q: Sequence[float]) -> WxyzQuaternion:
        """Return q on the wire for the orientation of the model: w, x, y, z. Raises ValueError."""
        return multiply(unit_rotation(q), self.rotation)

    def rotation_in_body(self, q: Sequence[float]) -> WxyzQuaternion:
        """Convert a rotation (w, x, y, z) from the model to the principal axes."""
        return multiply(conjugate(self.rotation), q)

    def vector_in_body(self, vector: Vector) -> Vector:
        """Convert a vector from the model to the principal axes."""
        return rotate(conjugate(self.rotation), vector)

    @classmethod
    def between(cls, model: Sequence[float], body: Sequence[float]) -> "BodyToModel":
        """Return the rotation between two orientations, each w, x, y, z. Raises ValueError."""
        return cls(multiply(conjugate(unit_rotation(model)), unit_rotation(body)))


def unit_rotation(q: Sequence[float]) -> WxyzQuaternion:
    """Normalize a quaternion (w, x, y, z). Raises ValueError if its length is not 1 within the tolerance."""
    w, x, y, z = q
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    if not abs(norm - 1.0) <= _LARGEST_NORM_ERROR:  # written so that NaN is refused too
        raise ValueError(f"The quaternion {w:g}, {x:g}, {y:g}, {z:g} has the length {norm:g} but must have 1.")
    return w / norm, x / norm, y / norm, z / norm
