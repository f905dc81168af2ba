# SPDX-License-Identifier: Apache-2.0
"""Topics of the kestrel's state, with the conversion in both directions.

On the wire, pitch, yaw, y and z have the opposite sign of REP 103, and units are degrees and cm.
"""

import math

from geometry_msgs.msg import PointStamped, QuaternionStamped, TwistStamped
from sensor_msgs.msg import BatteryState

from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, quaternion_from_euler
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.table import MissingTopicError, Topic, TopicTable
from drone_bridge.ros.topics.transforms import set_quaternion
from kestrel_bridge.codec import State
from kestrel_bridge.units import USUAL_SCALE

#: Field of a Twist for each axis of the wire, by its name in BodyVelocity.
AXES = {"left": "linear.y", "forward": "linear.x", "up": "linear.z", "turn": "angular.z"}
FULL_SCALE = tuple(
    ParameterDeclaration(f"full_scale.{axis}", full, f"{AXES[axis]} at full {axis}.", range=(1e-3, 1e3), live=True)
    for axis, full in USUAL_SCALE.items()
)


class Translation:
    """Conversion of the state to messages, and back."""

    def __init__(self, names: FrameNames) -> None:
        self._names = names

    def attitude(self, state, stamp):
        """Return the orientation of the body in odom, whose x axis is the direction of yaw 0."""
        message = QuaternionStamped()
        message.header.stamp, message.header.frame_id = stamp, self._names.odom
        q = quaternion_from_euler(*(math.radians(angle) for angle in (state.roll, -state.pitch, -state.yaw)))
        set_quaternion(message.quaternion, q)
        return message

    def wire_attitude(self, message):
        """Return pitch, roll and yaw in degrees."""
        q = message.quaternion
        roll, pitch, yaw = map(math.degrees, euler_from_quaternion(Quaternion(q.x, q.y, q.z, q.w)))
        return round(-pitch), round(roll), round(-yaw)

    def velocity(self, state, stamp):
        """Return the velocity along level axes with the body's heading. Rates are not on the wire."""
        message = TwistStamped()
        message.header.stamp, message.header.frame_id = stamp, f"{self._names.frame_prefix}base_stabilized"
        linear = message.twist.linear
        linear.x, linear.y, linear.z = state.vx / 100, -state.vy / 100, -state.vz / 100
        return message

    def wire_velocity(self, message):
        """Return vx, vy and vz in cm/s."""
        linear = message.twist.linear
        return round(100 * linear.x), round(-100 * linear.y), round(-100 * linear.z)

    def height(self, state, stamp):
        """Return the height above the ground."""
        message = PointStamped()
        message.header.stamp, message.header.frame_id = stamp, f"{self._names.frame_prefix}base_footprint"
        message.point.z = state.height / 100
        return message

    def wire_height(self, message):
        """Return the height in cm."""
        return round(100 * message.point.z)

    def battery(self, state, stamp):
        """Return the charge. Values that are not on the wire are NaN."""
        nan = math.nan
        message = BatteryState(voltage=nan, temperature=nan, current=nan, charge=nan, capacity=nan, design_capacity=nan)
        message.header.stamp, message.percentage, message.present = stamp, state.charge / 100, True
        return message

    def wire_battery(self, message):
        """Return the charge in percent, None if unknown."""
        return round(100 * message.percentage) if math.isfinite(message.percentage) else None


TOPICS = (
    Topic("attitude", QuaternionStamped, State, Translation.attitude, Translation.wire_attitude, meaning="in odom"),
    Topic("velocity", TwistStamped, State, Translation.velocity, Translation.wire_velocity, meaning="level axes"),
    Topic("height", PointStamped, State, Translation.height, Translation.wire_height, meaning="above the ground"),
    Topic("battery_state", BatteryState, State, Translation.battery, Translation.wire_battery, meaning="charge"),
)


def assemble(translation, value, stamp):
    """Return the state from the values of the topics. Raises MissingTopicError."""
    values = {name: value(name) for name in ("attitude", "velocity", "height")}
    for name, each in values.items():
        if each is None:
            raise MissingTopicError(name)
    charge = value("battery_state")
    return State(*values["attitude"], *values["velocity"], values["height"], 0 if charge is None else charge)


TABLE = TopicTable(TOPICS, lambda: Translation(FrameNames()), {State: assemble})
