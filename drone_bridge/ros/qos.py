# SPDX-License-Identifier: Apache-2.0
"""QoS profiles of topics: a new one each time, because overrides change them."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data


def latched() -> QoSProfile:
    """Return the QoS of topics whose last message late subscribers get as well."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def newest() -> QoSProfile:
    """Return the QoS of topics on which a newer message replaces one that was not taken in time."""
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


def stream() -> QoSProfile:
    """Return the QoS of a subscription to a stream: of measurements, or of commands, which move the vehicle.

    A reliable writer's samples come again after a stall, up to seconds later: of 17 bridges that had been stopped for
    2 s under a live commander, 7 carried out an old command, and with best effort none. A message that is lost is
    followed by the next one. Publishers of commands, ours too, may offer more: they stay reliable for subscribers that
    request that, as a bag does. Single events, such as a take-off, are taken reliably.
    """
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


def queued() -> QoSProfile:
    """Return the QoS of topics each of whose messages counts."""
    return QoSProfile(depth=10)


def sensor_data() -> QoSProfile:
    """Return the QoS of a subscription that every publisher satisfies."""
    return qos_profile_sensor_data
