# SPDX-License-Identifier: Apache-2.0
"""RosbridgeClient: the conversation with one client of rosbridge. For the executor's thread."""

import itertools
import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.node import Node
from rclpy.serialization import deserialize_message

from drone_bridge.ros.distributions import with_info
from drone_bridge.ros.type_names import name_of_type
from drone_bridge.tools.shared.topic_offers import DuplicateFilter, TopicOffers, request
from drone_bridge.tools.shell.messages import fill
from drone_bridge.tools.shell.node import check_type, imported, resolved, served
from drone_bridge.tools.web.access import VIEW_ONLY
from drone_bridge.tools.web.calls import Calls
from drone_bridge.tools.web.client_goals import ClientGoals
from drone_bridge.tools.web.outbox import Outbox, OutgoingMessage
from drone_bridge.tools.web.rosbridge import allowlist, rosapi
from drone_bridge.tools.web.rosbridge.json_messages import id_in, name_in, number_in, object_in, parse, plain, shown
from drone_bridge.wire.json_text import to_json

MAX_SUBSCRIPTIONS, MAX_PUBLISHERS = 64, 16
"""Maximum numbers of a client's topics; of its requests to subscribe to one topic, too."""
MAX_GOALS, MAX_CALLS = 8, 8
"""Maximum numbers of a client's goals and calls at a time."""
DEPTH = 10
MAX_ERROR = 500
#: Operations that need no permission to make changes. Of services, those of rosapi.
_FOR_ALL = ("subscribe", "unsubscribe", "call_service", "set_level")
_SEND_GOAL = "/_action/send_goal"

Request = dict[str, Any]


@dataclass(eq=False, slots=True)
class FollowedTopic:
    """Subscriptions to a topic, for a client."""

    number: int
    """Number in the outbox."""
    name: str
    """Its name as the client wrote it."""
    message_class: Any
    endpoints: list[Any] = field(default_factory=list)
    periods_s: dict[Any, float] = field(default_factory=dict)
    """Minimum period of each request to subscribe, by id. The least one counts."""
    due_s: float = -math.inf
    """Earliest time of the next message."""

    def text(self, data: bytes) -> str:
        """Return the message of the protocol, or a status if it is invalid."""
        try:
            message = plain(deserialize_message(data, self.message_class))
            return to_json({"op": "publish", "topic": self.name, "msg": message}).decode()
        except Exception as error:  # type supports raise various exceptions for invalid bytes
            sentence = f"Dropped an invalid message of {self.name}: {error}"
            return json.dumps({"op": "status", "level": "error", "msg": sentence})


def _in_a_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="rosbridge call", daemon=True).start()


class RosbridgeClient:
    """Executes the requests of a client, within bounds, and by the allowlist."""

    def __init__(
        self,
        node: Node,
        calls: Calls,
        goals: ClientGoals,
        outbox: Outbox,
        *,
        may_change: bool,
        run: Callable[[Callable[[], None]], None] = _in_a_thread,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare. `run` executes a function that waits for the response of a service."""
        self._node, self._calls, self.goals, self._outbox = node, calls, goals, outbox
        self._may_change, self._run, self._now_s = may_change, run, now_s
        self._subscribed: dict[str, FollowedTopic] = {}
        self._numbers = itertools.count(1)
        self._published: dict[str, Any] = {}
        self._calling = threading.Semaphore(MAX_CALLS)
        self._operations: dict[str, Callable[[Request], None]] = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "advertise": self._advertise,
            "unadvertise": self._unadvertise,
            "publish": self._publish,
            "call_service": self._call_service,
            "send_action_goal": self._send_goal,
            "cancel_action_goal": self._cancel_goal,
            "set_level": lambda _: None,  # errors are always sent
        }

    def receive(self, frame: str | bytes) -> None:
        """Execute a request. A problem is sent to the client in a sentence."""
        asked: Request = {}
        try:
            asked = parse(frame)
            operation, _ = name_in(asked, "op"), id_in(asked)
            if operation not in self._operations:
                raise ValueError(f"The operation is not served. There are {', '.join(self._operations)}.")
            if not self._may_change and operation not in _FOR_ALL:
                raise PermissionError(VIEW_ONLY)
            for option in ("compression", "fragment_size"):
                if asked.get(option) not in (None, "none"):
                    raise ValueError(f"{option} is {shown(asked[option])}, but messages are only sent whole, in JSON.")
            self._operations[operation](asked)
        except Exception as error:  # rclpy raises various exceptions for invalid names and values
            self._refuse(asked, error)

    def close(self) -> None:
        """Remove all that the client has created. Its goals are canceled, except a landing."""
        for publisher in self._published.values():
            self._node.destroy_publisher(publisher)
        for goal in self.goals.sent.values():
            if allowlist.last_part(goal.action) != allowlist.LAND:
                goal.cancel()
        self.goals.keep(())
        for followed in self._subscribed.values():
            self._end(followed)

    def text(self, waiting: OutgoingMessage) -> str:
        """Return a message of the outbox as text. Thread-safe."""
        if isinstance(waiting.data, str):
            return waiting.data
        return next(
            (it.text(waiting.data) for it in tuple(self._subscribed.values()) if it.number == waiting.subscription), ""
        )

    def _say(self, **fields: Any) -> None:
        self._outbox.put_control(json.dumps({name: value for name, value in fields.items() if value is not None}))

    def _refuse(self, asked: Request, error: BaseException) -> None:
        sentence, operation = (str(error) or repr(error))[:MAX_ERROR], asked.get("op")
        echo = {name: asked.get(name) for name in ("id", "service", "action")}
        echo = {name: value for name, value in echo.items() if isinstance(value, (str, int))}
        if operation == "call_service":
            self._say(op="service_response", values=sentence, result=False, **echo)
        elif operation == "send_action_goal":
            self._say(op="action_result", values=sentence, status=GoalStatus.STATUS_ABORTED, result=False, **echo)
        else:
            about = f"{shown(operation)}: " if operation else ""
            self._say(op="status", level="error", msg=f"{about}{sentence}", **echo)

    def _topic(self, asked: Request) -> str:
        return resolved(self._node, name_in(asked, "topic"))

    def _class_of(self, topic: str, asked: Request) -> Any:
        """Return the class of a topic's messages, of the requested type if there is one. Raises an error sentence."""
        types = dict(self._node.get_topic_names_and_types()).get(topic, [])
        if not types and not asked.get("type"):
            raise LookupError(f"{topic} does not exist, and the request has no type.")
        message_class = imported("msg", name_in(asked, "type") if asked.get("type") else types[0])
        if types:
            check_type(topic, types, name_of_type(message_class))
        return message_class

    # Topics.

    def _subscribe(self, asked: Request) -> None:
        topic, user = self._topic(asked), id_in(asked)
        period_s = number_in(asked, "throttle_rate") / 1000
        if topic not in self._subscribed:
            _check_room(self._subscribed, MAX_SUBSCRIPTIONS, "subscriptions")
            followed = FollowedTopic(next(self._numbers), asked["topic"], self._class_of(topic, asked))
            self._open(topic, followed)
            self._subscribed[topic] = followed
        periods_s = self._subscribed[topic].periods_s
        if user not in periods_s:
            _check_room(periods_s, MAX_SUBSCRIPTIONS, "subscriptions to a topic")
        periods_s[user] = period_s

    def _open(self, topic: str, followed: FollowedTopic) -> None:
        """Subscribe, to present and future publishers of any QoS."""
        is_new = DuplicateFilter().is_new

        def take(data: bytes, info: Any) -> None:
            now_s = self._now_s()
            if is_new(data, info) and now_s >= followed.due_s:
                followed.due_s = now_s + min(followed.periods_s.values(), default=0.0)
                self._outbox.put(followed.number, data, 0)

        self._outbox.subscribe(followed.number, followed.number)
        offers = TopicOffers.of(self._node.get_publishers_info_by_topic(topic))
        profiles = offers.requests(DEPTH) or [request(True, True, DEPTH), request(False, False, DEPTH)]
        for profile in profiles:
            followed.endpoints.append(
                self._node.create_subscription(followed.message_class, topic, with_info(take), profile, raw=True)
            )

    def _unsubscribe(self, asked: Request) -> None:
        topic, user = self._topic(asked), id_in(asked)
        followed = self._subscribed.get(topic)
        if followed is None:
            raise LookupError(f"There is no subscription to {topic}.")
        followed.periods_s.pop(user, None)
        if user is None or not followed.periods_s:
            self._end(self._subscribed.pop(topic))

    def _end(self, followed: FollowedTopic) -> None:
        for each in followed.endpoints:
            self._node.destroy_subscription(each)
        self._outbox.withdraw(followed.number)

    def _advertise(self, asked: Request) -> None:
        topic = self._topic(asked)
        allowlist.check_topic(topic)
        message_class = self._class_of(topic, asked)
        if topic not in self._published:
            _check_room(self._published, MAX_PUBLISHERS, "published topics")
            self._published[topic] = self._node.create_publisher(message_class, topic, DEPTH)

    def _unadvertise(self, asked: Request) -> None:
        if publisher := self._published.pop(self._topic(asked), None):
            self._node.destroy_publisher(publisher)

    def _publish(self, asked: Request) -> None:
        topic = self._topic(asked)
        if topic not in self._published:
            self._advertise(asked)
        publisher, values = self._published[topic], object_in(asked, "msg")
        message = publisher.msg_type()
        fill(message, values)
        if hasattr(message, "header") and "stamp" not in (values.get("header") or {}):
            message.header.stamp = self._node.get_clock().now().to_msg()
        publisher.publish(message)

    # Services.

    def _call_service(self, asked: Request) -> None:
        written, values = name_in(asked, "service"), object_in(asked, "args")
        if written.lstrip("/").startswith(rosapi.PREFIX):
            self._answer(asked, rosapi.answer(self._node, written, values))
            return
        if not self._may_change:
            raise PermissionError(VIEW_ONLY)
        service = resolved(self._node, written)
        allowlist.check_service(service)
        types = dict(self._node.get_service_names_and_types()).get(service)
        if not types:
            raise LookupError(f"The service {service} does not exist.")
        service_type = imported("srv", types[0])
        wanted = service_type.Request()
        fill(wanted, values)
        allowlist.check_service(service, wanted)
        if not self._calling.acquire(blocking=False):
            raise RuntimeError(f"The limit of {MAX_CALLS} pending calls is reached.")
        self._run(lambda: self._wait_for_response(asked, service, service_type, wanted))

    def _wait_for_response(self, asked: Request, service: str, service_type: Any, wanted: Any) -> None:
        try:
            self._answer(asked, plain(self._calls.call(service, service_type, wanted)))
        except Exception as error:  # no response, or an invalid one
            self._refuse(asked, error)
        finally:
            self._calling.release()

    def _answer(self, asked: Request, values: Any) -> None:
        self._say(op="service_response", id=asked.get("id"), service=asked["service"], values=values, result=True)

    # Actions.

    def _send_goal(self, asked: Request) -> None:
        number, action = id_in(asked), resolved(self._node, name_in(asked, "action"))
        allowlist.check_action(action)
        _check_room(self.goals.sent, MAX_GOALS, "goals")
        if number in self.goals.sent:
            raise ValueError(f"The goal {shown(number)} exists already.")
        kind = imported("action", name_in(asked, "action_type"))
        types = dict(served(self._node)).get(action + _SEND_GOAL)
        if not types:
            raise LookupError(f"The action {action} does not exist.")
        check_type(action, types, f"{name_of_type(kind)}_SendGoal")
        goal = kind.Goal()
        fill(goal, object_in(asked, "args"))
        about = {"id": number, "action": asked["action"]}

        def on_feedback(feedback: Any) -> None:
            if asked.get("feedback"):
                self._say(op="action_feedback", values=plain(feedback), **about)

        def on_end(ended: Any) -> None:
            if isinstance(ended, BaseException):
                self._refuse(asked, ended)
            else:
                self._say(op="action_result", values=plain(ended.result), status=ended.status, result=True, **about)

        self.goals.send(number, action, kind, goal, on_feedback=on_feedback, on_end=on_end)

    def _cancel_goal(self, asked: Request) -> None:
        goal = self.goals.sent.get(id_in(asked))
        if goal is None:
            raise LookupError(f"There is no goal {shown(asked.get('id'))}.")
        goal.cancel()


def _check_room(found: Any, limit: int, what: str) -> None:
    if len(found) >= limit:
        raise RuntimeError(f"The limit of {limit} {what} is reached.")
