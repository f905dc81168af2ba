# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge check`: whether a vehicle fits a server that runs here, or a program a bridge, topic by topic.

Looks for some seconds at each topic of the node: who publishes or takes it, with which type and QoS, how often, how
old, and in whose axes. A line begins with ok, - (nobody is there, and nothing needs it) or ! with a sentence about what
is missing; the exit status is 1 if there is such a sentence.
"""

import argparse
import struct
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, ReliabilityPolicy, qos_check_compatible
from rclpy.topic_endpoint_info import TopicEndpointInfo

from drone_bridge.kind import ProtocolKind, kinds, load
from drone_bridge.ros.last_word import COMMAND_TOPICS
from drone_bridge.ros.topics import Topic

LOOK_S = 5.0
DISCOVERY_S = 10.0
_QUIET_S = 1.5
#: Stamps further from this machine's clock are said, s.
OLD_S, EARLY_S = 1.0, 0.1
#: What every node has, and what is not about the vehicle.
_OF_NODES = ("/rosout", "/parameter_events", "/diagnostics", "/clock", "/tf", "/tf_static")
_OWN_NAME = "_drone_bridge_check"


@dataclass(slots=True)
class Heard:
    """What came on a topic while it was looked at."""

    count: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    age_s: float | None = None
    frame: str | None = None

    def take(self, data: bytes, has_header: bool, now_s: float) -> None:
        """Note a message as it was serialized, and its header if it begins with one."""
        clock_s = time.time()
        self.first_s = self.first_s if self.count else now_s
        self.count, self.last_s = self.count + 1, now_s
        if has_header:
            order = "<" if data[1] & 1 else ">"
            sec, nanosec, length = struct.unpack_from(f"{order}iII", data, 4)
            self.age_s = clock_s - sec - nanosec / 1e9 if sec or nanosec else None
            self.frame = bytes(data[16 : 16 + length]).rstrip(b"\0").decode(errors="replace")

    @property
    def rate(self) -> float:
        """Messages per second."""
        return (self.count - 1) / (self.last_s - self.first_s) if self.count > 1 else 0.0


@dataclass(slots=True)
class Look:
    """A topic of the node, and what was found there."""

    name: str  # as in the table
    topic: str  # in full
    is_taken: bool  # by the node; else it publishes it
    own: list[TopicEndpointInfo]
    others: list[TopicEndpointInfo]
    row: Topic | None
    frame: str  # that is expected; empty for any
    heard: Heard = field(default_factory=Heard)


class Checker:
    """One look at one node."""

    def __init__(self, node: Node, executor: SingleThreadedExecutor, kind: ProtocolKind, name: str) -> None:
        """`name` is the node's, with its namespace."""
        self._node, self._executor = node, executor
        self._namespace, _, self._name = name.rpartition("/")
        self._namespace = self._namespace or "/"
        self._is_server = self._name.endswith("_server")
        self._rows = {row.name: row for row in load(kind.topics).rows}
        self._frames = expected_frames(kind)
        self._declared = (kind.server if self._is_server else kind.bridge).declarations

    def is_there(self) -> bool:
        """Wait for the node; return whether it has come."""
        return self._spin(DISCOVERY_S, lambda: (self._name, self._namespace) in self._names())

    def looks(self, for_s: float) -> list[Look]:
        """Return what is found at each of the node's topics, after looking for so long, s."""
        self._wait_for_endpoints()
        looks = [*self._looks(is_taken=True), *self._looks(is_taken=False)]
        kept = [self._listen(look) for look in looks if look.others or not look.is_taken]
        self._spin(for_s)
        for subscription in filter(None, kept):
            self._node.destroy_subscription(subscription)
        return looks

    def parameter(self, name: str) -> float | None:
        """Return a number as the node has it, else as it is declared; None if it has no such parameter."""
        service = f"{self._namespace.rstrip('/')}/{self._name}/get_parameters"
        client: Any = self._node.create_client(GetParameters, service)
        if name in self._declared and client.wait_for_service(1.0):
            future = client.call_async(GetParameters.Request(names=[name]))
            self._spin(2.0, future.done)
            if (answer := future.result()) and answer.values[0].type == 3:
                return float(answer.values[0].double_value)
        declared = self._declared.get(name)
        return None if declared is None else float(declared.default)

    def _spin(self, for_s: float, until: Any = lambda: False) -> bool:
        end_s = time.monotonic() + for_s
        while not (met := until()) and time.monotonic() < end_s:
            self._executor.spin_once(timeout_sec=0.05)
        return bool(met)

    def _wait_for_endpoints(self) -> None:
        """Wait until no more publishers and subscriptions come: they are discovered one by one."""
        found: list[tuple[int, int]] = []
        for _ in range(round(DISCOVERY_S / _QUIET_S)):
            topics = [topic for topic, _ in self._node.get_topic_names_and_types()]
            found.append(
                (sum(map(self._node.count_publishers, topics)), sum(map(self._node.count_subscribers, topics)))
            )
            if found[-2:] == [found[-1]] * 2:
                return
            self._spin(_QUIET_S)

    def _names(self) -> list[tuple[str, str]]:
        return self._node.get_node_names_and_namespaces()

    def _looks(self, *, is_taken: bool) -> Iterator[Look]:
        by_node = (
            self._node.get_subscriber_names_and_types_by_node
            if is_taken
            else self._node.get_publisher_names_and_types_by_node
        )
        for topic, _ in sorted(by_node(self._name, self._namespace)):
            short = topic.removeprefix(f"{self._namespace.rstrip('/')}/")
            if topic in _OF_NODES or short.startswith(f"{self._name}/") or short.endswith("/transition_event"):
                continue
            published = self._node.get_publishers_info_by_topic(topic)
            taken = self._node.get_subscriptions_info_by_topic(topic)
            own, others = (taken, published) if is_taken else (published, taken)
            yield Look(
                short,
                topic,
                is_taken,
                [each for each in own if self._is_own(each)],
                [each for each in others if not self._is_own(each) and not each.node_name.startswith("_")],
                self._rows.get(short),
                self._frames.get(short, ""),
            )

    def _is_own(self, endpoint: TopicEndpointInfo) -> bool:
        return endpoint.node_name == self._name and endpoint.node_namespace == self._namespace

    def _listen(self, look: Look) -> Any:
        """Count what comes, by the QoS that its publishers offer; nothing of a type that is not known here."""
        publishers = look.others if look.is_taken else look.own
        kind = _class_of(publishers[0].topic_type) if publishers else None
        if kind is None:
            return None
        has_header = next(iter(kind.get_fields_and_field_types().values()), "") == "std_msgs/Header"
        offers = [each.qos_profile for each in publishers]
        qos = QoSProfile(depth=10)
        qos.reliability, qos.durability = _weakest(offers)
        heard = look.heard
        return self._node.create_subscription(
            kind,
            look.topic,
            lambda data: heard.take(data, has_header, time.monotonic()),
            qos,
            raw=True,
        )


def _weakest(offers: Collection[QoSProfile]) -> tuple[ReliabilityPolicy, DurabilityPolicy]:
    """Return what all of the offers satisfy."""
    is_reliable = all(each.reliability == ReliabilityPolicy.RELIABLE for each in offers)
    is_latched = all(each.durability == DurabilityPolicy.TRANSIENT_LOCAL for each in offers)
    return (
        ReliabilityPolicy.RELIABLE if is_reliable else ReliabilityPolicy.BEST_EFFORT,
        DurabilityPolicy.TRANSIENT_LOCAL if is_latched else DurabilityPolicy.VOLATILE,
    )


def _class_of(type_name: str) -> Any:
    package, _, name = type_name.split("/")
    try:
        return load(f"{package}.msg:{name}")
    except (ImportError, AttributeError):
        return None


def expected_frames(kind: ProtocolKind) -> dict[str, str]:
    """Return the frame of each topic with a header, as the bridge publishes it by default."""
    table = load(kind.topics)
    translation, frames = table.make_translation(), {}
    for wire in (sent.message if sent.read is None else sent.read for sent in load(kind.conversation)()):
        for row in table.rows:
            if not isinstance(wire, row.of) or row.to_ros is None or "{" in row.name or row.is_slow:
                continue
            message = row.to_ros(translation, wire, Time())
            if header := getattr(message, "header", None):
                frames[row.name] = str(header.frame_id)
    return frames


# What is said about it.


def problems(look: Look, looks: Collection[Look], freshness_s: float | None) -> Iterator[str]:
    """Say what is missing on a topic; `freshness_s` is how long a message on it counts."""
    does = "publishes" if look.is_taken else "takes"
    if not look.others:
        if missing := _missing(look, looks):
            yield f"Nobody {does} it: {missing}."
        return
    own_type = look.own[0].topic_type
    wrong = {each.topic_type: _names([each]) for each in look.others if each.topic_type != own_type}
    for other, who in wrong.items():
        yield f"{who} {does} {other}, and it has to be {own_type}: nothing of that arrives."
    if wrong:
        return
    yield from _qos_problems(look)
    yield from _message_problems(look, freshness_s)


def _missing(look: Look, looks: Collection[Look]) -> str:
    if not look.is_taken:
        is_command = look.name in COMMAND_TOPICS
        has_other = any(each.others for each in looks if not each.is_taken and each.name in COMMAND_TOPICS)
        return "commands move no vehicle" if is_command and not has_other else ""
    if look.row is None or not look.row.needed:
        return ""
    present = {each.name for each in looks if each.is_taken and each.others}
    return "" if present & set(look.row.instead) else look.row.needed


def _qos_problems(look: Look) -> Iterator[str]:
    """Compare with what the node asked for at first, as it goes on to ask for less where less is offered."""
    own = max(look.own, key=lambda each: each.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL)
    for other in look.others:
        offer, request = (other, own) if look.is_taken else (own, other)
        verdict, reason = qos_check_compatible(offer.qos_profile, request.qos_profile)
        if verdict != QoSCompatibility.ERROR:
            continue
        if look.is_taken and request.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
            yield (
                f"{_names([other])} publishes it with durability volatile, and it should be transient_local: what was "
                "said before the node came is not heard."
            )
        else:
            yield f"The QoS of {_names([other])} does not fit ({reason.strip().rstrip(';')}): nothing of that arrives."


def _message_problems(look: Look, freshness_s: float | None) -> Iterator[str]:
    heard = look.heard
    lasts = look.row is not None and (look.row.lasts or look.row.only_changes)
    if not lasts:
        if look.is_taken:
            yield from _rate_problems(heard, freshness_s)
        if heard.age_s is not None and not -EARLY_S <= heard.age_s <= OLD_S:
            side = "behind" if heard.age_s > 0 else "ahead of"
            yield f"Its stamps are {abs(heard.age_s):.1f} s {side} this machine's clock."
    if heard.frame is not None and look.is_taken and look.frame and not _is_frame(heard.frame, look.frame):
        yield (
            f"Its frame_id is {heard.frame!r}, where {look.frame} is expected: make sure that its axes are those, and "
            "name them so."
        )


def _rate_problems(heard: Heard, freshness_s: float | None) -> Iterator[str]:
    if not heard.count:
        yield "It has a publisher, and nothing came."
    elif freshness_s and heard.rate * freshness_s < 1.0:
        yield (
            f"It comes {heard.rate:.2g} times per second, and a message counts for {freshness_s:g} s: in between the "
            "node has none."
        )


def _is_frame(frame: str, expected: str) -> bool:
    """Whether it is that frame, perhaps with a prefix."""
    return frame == expected or frame.endswith(f"/{expected}")


def _names(endpoints: Collection[TopicEndpointInfo]) -> str:
    return ", ".join(sorted({f"{each.node_namespace.rstrip('/')}/{each.node_name}" for each in endpoints}))


def _line(look: Look, is_bad: bool) -> str:
    mark = "! " if is_bad else "ok" if look.others else "- "
    words = [mark, "takes    " if look.is_taken else "publishes", f"{look.name:28}"]
    words.append(look.own[0].topic_type if look.own else "")
    qos = look.others[0].qos_profile if look.others else None
    if qos:
        words.append(f"{'from' if look.is_taken else 'to'} {_names(look.others)}")
        words.append("reliable" if qos.reliability == ReliabilityPolicy.RELIABLE else "best effort")
        words += ["latched"] * (qos.durability == DurabilityPolicy.TRANSIENT_LOCAL)
    heard = look.heard
    words += [f"{heard.rate:.1f} Hz"] if heard.count > 1 else [f"{heard.count} message"] * heard.count
    words += [f"{heard.age_s:.3f} s old"] if heard.age_s is not None else []
    words += [f"in {heard.frame}"] if heard.frame else []
    return f"{words[0]} {words[1]} {words[2]} " + ", ".join(word for word in words[3:] if word)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what was found; returns 1 if something is missing."""
    nodes = {name: kind for kind in kinds().values() for name in (f"{kind.name}_bridge", f"{kind.name}_server")}
    parser = argparse.ArgumentParser(prog="drone-bridge check", description=__doc__)
    parser.add_argument("node", choices=sorted(nodes), metavar="node", help=f"one of {', '.join(sorted(nodes))}")
    parser.add_argument("--namespace", default="", help="of the node (none)")
    parser.add_argument("--seconds", type=float, default=LOOK_S, help=f"how long to look ({LOOK_S:g})")
    chosen = parser.parse_args(argv)
    full = f"/{chosen.namespace.strip('/')}/{chosen.node}".replace("//", "/")
    rclpy.init()
    try:
        executor = SingleThreadedExecutor()
        node = rclpy.create_node(_OWN_NAME, start_parameter_services=False)
        executor.add_node(node)
        checker = Checker(node, executor, nodes[chosen.node], full)
        if not checker.is_there():
            print(f"! No node {full} runs here, or none that this machine hears: launch it first.")
            return 1
        return _report(checker, chosen.seconds)
    finally:
        rclpy.try_shutdown()


def _report(checker: Checker, for_s: float) -> int:
    timeout_s = checker.parameter("source_timeout")
    looks, count = checker.looks(for_s), 0
    for look in looks:
        freshness_s = look.row.fresh_s if look.row and look.row.fresh_s else timeout_s
        sentences = list(problems(look, looks, freshness_s))
        print(_line(look, bool(sentences)))
        for sentence in sentences:
            print(f"   -> {look.name}: {sentence}")
        count += len(sentences)
    print(f"{count} things are missing." if count else "Everything that is needed is there.")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
