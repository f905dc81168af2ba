# SPDX-License-Identifier: Apache-2.0
"""Small bags for tests, written by the rosbags library instead of our recorder."""

from rclpy.serialization import serialize_message
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

NO_END = QosTime(9223372036, 854775807)


def offer(reliable=True, latched=False, depth=10):
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=depth,
        reliability=QosReliability.RELIABLE if reliable else QosReliability.BEST_EFFORT,
        durability=QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        deadline=NO_END,
        lifespan=NO_END,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=NO_END,
        avoid_ros_namespace_conventions=False,
    )


def write_bag(path, messages, offers=None, storage=StoragePlugin.MCAP, more_types=()):
    """Write (topic, time in ns, message) tuples; `offers` by topic. `more_types` are texts of unknown definitions.

    A message may be one of rosbags, of a type that is not installed.
    """
    store = get_typestore(Stores.ROS2_JAZZY)
    connections = {}
    with Writer(path, version=9, storage_plugin=storage) as writer:
        for topic, time_ns, message in messages:
            key = topic, type(message)
            own_name = getattr(message, "__msgtype__", "")
            if key not in connections:
                package, name = type(message).__module__.partition(".msg.")[0], type(message).__name__
                connections[key] = writer.add_connection(
                    topic,
                    own_name or f"{package}/msg/{name}",
                    typestore=store,
                    offered_qos_profiles=(offers or {}).get(topic, [offer()]),
                )
            data = store.serialize_cdr(message, own_name) if own_name else serialize_message(message)
            writer.write(connections[key], time_ns, data)
        for topic, type_name, text in more_types:
            from rosbags.typesys import get_types_from_msg

            store.register(get_types_from_msg(text, type_name))
            writer.add_connection(topic, type_name, typestore=store)
    return path
