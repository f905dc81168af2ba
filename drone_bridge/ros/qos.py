# SPDX-License-Identifier: Apache-2.0
"""QoS profiles that several nodes use: a new one each time, because leases and overrides change them."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy


def latched() -> QoSProfile:
    """Return the QoS of topics whose last message late subscribers get as well."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def newest() -> QoSProfile:
    """Return the QoS of topics on which a newer message replaces one that was not taken in time."""
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
