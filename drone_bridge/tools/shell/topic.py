# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge topic`: list, info, echo and hz of topics, and pub on one."""

import contextlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.node import Node, TopicEndpointInfo
from rclpy.serialization import deserialize_message

from drone_bridge.programs.options import suggestion
from drone_bridge.ros.distributions import with_info
from drone_bridge.ros.hold.hold_services import CommandRefusals
from drone_bridge.ros.publishers import wait_for_delivery
from drone_bridge.ros.type_names import name_of_type
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shared.discovery import DISCOVERY_S
from drone_bridge.tools.shared.topic_offers import DuplicateFilter, TopicOffers, request
from drone_bridge.tools.shell.messages import as_yaml, field_of, filled
from drone_bridge.tools.shell.node import (
    CommandFailedError,
    check_type,
    discovered,
    imported,
    resolved,
    run,
    spin_until,
    types_of,
)

_REPORT_S = 1.0
#: Time without a message after which the publishers of a topic are named, s.
_SILENT_S = 5.0
_DEPTH = 10


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    parser = CommandParser(prog="drone-bridge topic", description="List, print, time or publish topics.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="the topics of this ROS domain")
    listing.add_argument("-t", "--show-types", action="store_true", help="with their types")
    info = verbs.add_parser("info", help="print the types, publishers and subscribers of a topic")
    info.add_argument("-v", "--verbose", action="store_true", help="with their nodes and QoS")
    info.add_argument("topic")
    echo = verbs.add_parser("echo", help="print the messages of a topic")
    echo.add_argument("--once", action="store_true", help="only the first one")
    echo.add_argument("--field", default="", help="only this field, such as pose.pose.position")
    hz = verbs.add_parser("hz", help="print the rate of a topic")
    for verb in (echo, hz):
        verb.add_argument("topic")
        verb.add_argument("type", nargs="?", help="of the messages; by default that of their publisher")
    pub = verbs.add_parser("pub", help="publish on a topic")
    pub.add_argument("-r", "--rate", type=float, default=1.0, help="messages per second (1)")
    pub.add_argument("-t", "--times", type=int, default=0, help="number of messages; 0: until Ctrl-C")
    pub.add_argument(
        "-1", "--once", action="store_true", help="publish one message, as soon as the topic has a subscriber"
    )
    pub.add_argument("topic")
    pub.add_argument("type", help="of the message, such as geometry_msgs/msg/Twist")
    pub.add_argument("message", nargs="?", default="", help="its fields as YAML; others are zero")
    words = parser.parse_args(argv)
    serve: dict[str, Callable[[Node, Any], int]] = {
        "list": _list,
        "info": _info,
        "echo": _echo,
        "hz": _hz,
        "pub": _publish,
    }
    return run("topic", argv, lambda node: serve[words.verb](node, words))


def _list(node: Node, words: Any) -> int:
    for name, types in discovered(node, node.get_topic_names_and_types):
        print(f"{name} [{', '.join(types)}]" if words.show_types else name)
    return 0


def _info(node: Node, words: Any) -> int:
    topic = resolved(node, words.topic)
    types_of(node, topic, node.get_topic_names_and_types, f"No node publishes or subscribes to {topic}")
    types = dict(discovered(node, node.get_topic_names_and_types)).get(topic, [])
    print(f"Type: {', '.join(types)}")
    for title, endpoints in (
        ("Publisher", node.get_publishers_info_by_topic(topic)),
        ("Subscription", node.get_subscriptions_info_by_topic(topic)),
    ):
        print(f"{title} count: {len(endpoints)}")
        if words.verbose:
            for line in sorted(_described(each) for each in endpoints):
                print(f"  {line}")
    return 0


def _described(endpoint: TopicEndpointInfo) -> str:
    """Return node, type and QoS of an endpoint."""
    qos = endpoint.qos_profile
    kinds = f"{qos.reliability.name.lower().replace('_', ' ')}, {qos.durability.name.lower().replace('_', ' ')}"
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}: {endpoint.topic_type}, {kinds}"


def _echo(node: Node, words: Any) -> int:
    received: list[Any] = []
    field_of(subscribe(node, words, received.append)(), words.field)
    if not spin_until(node, lambda: received, _SILENT_S):
        topic = node.resolve_topic_name(words.topic)
        names = sorted(_described(each).partition(":")[0] for each in node.get_publishers_info_by_topic(topic))
        who = f"It is published by {' and '.join(names)}: `drone-bridge doctor` reports its link."
        who = who if names else "No node publishes it."
        print(f"No message on {topic} yet. {who}", file=sys.stderr, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            for message in spin_until(node, lambda: received, math.inf):
                print(as_yaml(field_of(message, words.field)), end="---\n", flush=True)
                if words.once:
                    return 0
            received.clear()
    return 0


def _hz(node: Node, words: Any) -> int:
    times_s: list[float] = []
    subscribe(node, words, lambda _: times_s.append(time.monotonic()))
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            began_s = time.monotonic()
            spin_until(node, lambda: False, _REPORT_S)
            print(f"{len(times_s) / (time.monotonic() - began_s):.1f} messages per second", flush=True)
            times_s.clear()
    return 0


def subscribe(node: Node, words: Any, take: Callable[[Any], None]) -> Any:
    """Subscribe with a QoS that suits all publishers. Return the type. Raises CommandFailedError without one."""
    topic = resolved(node, words.topic)
    if not words.type:
        types_of(node, topic, lambda: published(node), f"No node publishes {topic}")
    publishers = spin_until(node, lambda: node.get_publishers_info_by_topic(topic), DISCOVERY_S)
    kind = imported("msg", words.type or publishers[0].topic_type)
    if publishers:
        check_type(topic, sorted({each.topic_type for each in publishers}), name_of_type(kind))
    requests = TopicOffers.of(publishers).requests(_DEPTH) or [request(reliable=False, latched=False, depth=_DEPTH)]
    once = DuplicateFilter()

    def take_first(data: bytes, info: dict[str, Any]) -> None:
        if len(requests) == 1 or once.is_new(data, info):
            take(deserialize_message(data, kind))

    for each in requests:
        node.create_subscription(kind, topic, with_info(take_first), each, raw=True)
    return kind


def published(node: Node) -> list[tuple[str, list[str]]]:
    """Return the topics that have a publisher, each with its types."""
    return [each for each in node.get_topic_names_and_types() if node.count_publishers(each[0])]


def _publish(node: Node, words: Any) -> int:
    if not words.rate > 0:
        raise CommandFailedError(f"The rate is {words.rate:g} but must be above 0.")
    kind = imported("msg", words.type)
    message = filled(kind(), words.message)
    publisher = node.create_publisher(kind, resolved(node, words.topic), 10)
    most = 1 if words.once else words.times
    wait = {"discovery_s": 0.0} if most else {}  # waits for a subscriber itself

    def similar(topic: str) -> str:
        return suggestion(topic, [name for name, _ in node.get_topic_names_and_types() if node.count_subscribers(name)])

    refusals = CommandRefusals(node, kind, publisher.topic_name, similar=similar, **wait)
    is_received = spin_until(node, publisher.get_subscription_count, DISCOVERY_S if most else _REPORT_S)
    if most and not is_received:
        raise CommandFailedError(" ".join(refusals.changes()) or f"No node receives {publisher.topic_name}.")
    sent = 0
    with contextlib.suppress(KeyboardInterrupt):
        next_s = look_s = time.monotonic()
        while not most or sent < most:
            if hasattr(message, "header"):
                message.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(message)
            sent += 1
            next_s += 1 / words.rate
            spin_until(node, lambda: False, max(0.0, next_s - time.monotonic()))
            if time.monotonic() >= look_s:
                look_s = time.monotonic() + _REPORT_S
                for sentence in refusals.changes():
                    print(sentence, file=sys.stderr, flush=True)
        wait_for_delivery(publisher)
    return 0
