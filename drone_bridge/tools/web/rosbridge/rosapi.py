# SPDX-License-Identifier: Apache-2.0
"""Services of rosapi that clients of rosbridge use, answered here. For the executor's thread."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.node import Node

from drone_bridge.ros.type_names import name_of_type
from drone_bridge.tools.shell.messages import element_of
from drone_bridge.tools.shell.node import imported, resolved, served
from drone_bridge.tools.web.rosbridge.json_messages import name_in

PREFIX = "rosapi/"
_SEND_GOAL = "/_action/send_goal"

Asked = dict[str, Any]


def answer(node: Node, service: str, asked: Asked) -> Any:
    """Return the response of a service of rosapi. Raises LookupError for others."""
    name = service.rpartition("/")[2]
    if name not in _ANSWERS:
        raise LookupError(f"{service} is not served. Of rosapi, there are {', '.join(_ANSWERS)}.")
    return _ANSWERS[name](node, asked)


def _topics(node: Node, _: Asked) -> Any:
    found = node.get_topic_names_and_types()
    return {"topics": [name for name, _ in found], "types": [types[0] for _, types in found]}


def _type(found: Iterable[tuple[str, list[str]]], name: str) -> Any:
    return {"type": dict(found).get(name, [""])[0]}


def _nodes_of(found: Iterable[Any]) -> list[str]:
    return sorted({_full(each.node_name, each.node_namespace) for each in found})


def _node_details(node: Node, asked: Asked) -> Any:
    namespace, _, name = name_in(asked, "node").rpartition("/")
    by_node = {
        "subscribing": node.get_subscriber_names_and_types_by_node,
        "publishing": node.get_publisher_names_and_types_by_node,
        "services": node.get_service_names_and_types_by_node,
    }
    return {field: [each for each, _ in found(name, namespace or "/")] for field, found in by_node.items()}


def _full(name: str, namespace: str) -> str:
    return f"{namespace.rstrip('/')}/{name}"


def _details(message_class: Any) -> Any:
    fields = message_class.get_fields_and_field_types()
    elements = [element_of(kind) for kind in fields.values()]
    lengths = [-1 if kind in elements else 0 for kind in fields.values()]
    typedef = {"type": name_of_type(message_class), "fieldnames": list(fields), "fieldtypes": elements}
    return {"typedefs": [{**typedef, "fieldarraylen": lengths}]}


_ANSWERS: dict[str, Callable[[Node, Asked], Any]] = {
    "topics": _topics,
    "topic_type": lambda node, asked: _type(node.get_topic_names_and_types(), resolved(node, name_in(asked, "topic"))),
    "publishers": lambda node, asked: {
        "publishers": _nodes_of(node.get_publishers_info_by_topic(resolved(node, name_in(asked, "topic"))))
    },
    "subscribers": lambda node, asked: {
        "subscribers": _nodes_of(node.get_subscriptions_info_by_topic(resolved(node, name_in(asked, "topic"))))
    },
    "services": lambda node, _: {"services": [name for name, _ in served(node)]},
    "service_type": lambda node, asked: _type(
        node.get_service_names_and_types(), resolved(node, name_in(asked, "service"))
    ),
    "nodes": lambda node, _: {"nodes": sorted(_full(*each) for each in node.get_node_names_and_namespaces())},
    "node_details": _node_details,
    "action_servers": lambda node, _: {
        "action_servers": [name.removesuffix(_SEND_GOAL) for name, _ in served(node) if name.endswith(_SEND_GOAL)]
    },
    "message_details": lambda _, asked: _details(imported("msg", name_in(asked, "type"))),
    "service_request_details": lambda _, asked: _details(imported("srv", name_in(asked, "type")).Request),
    "service_response_details": lambda _, asked: _details(imported("srv", name_in(asked, "type")).Response),
    "get_ros_version": lambda _, __: {"version": 2, "distro": os.environ.get("ROS_DISTRO", "")},
}
