# SPDX-License-Identifier: Apache-2.0
"""PlainNode: fake node without ROS, which records publications and calls callbacks for tests."""

import contextlib
from collections import Counter
from types import SimpleNamespace

from rclpy.task import Future

from drone_bridge.session.hold_state import CALLED, HoldState


class PlainHold:
    """Fake Hold."""

    def __init__(self):
        self.state = HoldState()
        self._on_hold = []

    @property
    def is_held(self):
        return bool(self.state.now[0])

    def when_set(self, call):
        self._on_hold.append(call)

    def admits(self, topic):
        return not self.is_held

    def set(self, is_held):
        """Run the service's callback, as in the executor."""
        self.state.now = CALLED if is_held else "", None
        for call in tuple(self._on_hold):
            call()


class PlainService:
    """Client of a service that succeeds at once."""

    def __init__(self, node, kind, name):
        self._node, self._kind, self._name = node, kind, name
        self.srv_name = name

    def service_is_ready(self):
        return True

    def call_async(self, request):
        self._node.called.append((self._name, request))
        answered = Future()
        answered.set_result(self._kind.Response(success=True))
        return answered


class PlainNode:
    """Node that records `published` (topic, message) pairs, and service requests in `called`."""

    context = SimpleNamespace(get_domain_id=lambda: 7)

    def __init__(self, **parameters):
        self.parameters = {"command_timeout": 0.5, "neutral_time": 60.0, **parameters}
        self.hold = PlainHold()
        self.published, self.called = [], []
        self.publishers, self.subscribers = [], []  # of other nodes, in the graph
        self.cleanup = contextlib.ExitStack()
        self.warned, self.logged = [], []
        self.conditions, self.logs = {}, {}  # of obstacles by their keys: reasons, and whether they log themselves
        self.report = SimpleNamespace(
            counts=Counter(),
            facts={},
            silence=SimpleNamespace(),
            record_duration=self._do_nothing,
            count_and_warn=self._count_and_warn,
            count_and_warn_ongoing=self._count_and_warn,
            end_ongoing=self._do_nothing,
            warn_ongoing=self._warn_ongoing,
            update_obstacle=self._update_obstacle,
            end_condition=lambda name: self.conditions.update({name: None}),
            inform=self.logged.append,
            warn=lambda sentence, count="": self.warned.append(sentence),
            is_open=False,
        )

    def _do_nothing(self, *_, **__):
        return None

    keep_subscription = make_timer = each_second = when_activated = _do_nothing

    def _count_and_warn(self, count, sentence):
        self.report.counts[count] += 1
        self.warned.append(sentence)

    def _warn_ongoing(self, condition, sentence):
        if sentence not in self.warned:
            self.warned.append(sentence)

    def _update_obstacle(self, obstacle, facts, *_, is_logged=True):
        self.logs[obstacle.key] = is_logged
        self.conditions[obstacle.key] = None if facts is None else obstacle.reason(**facts)

    def get_logger(self):
        return SimpleNamespace(info=self.logged.append, warning=self.logged.append, error=self.logged.append)

    def check_age(self, what):
        pass

    def create_service(self, kind, name, serve):
        self.serve = serve

    def resolve_service_name(self, name):
        return f"/{name}"

    # Topics.

    def resolve_topic_name(self, topic):
        return f"/{topic.removeprefix('/')}"

    def make_publisher(self, message_type, topic, qos):
        return SimpleNamespace(topic_name=f"/{topic}", msg_type=message_type)

    def destroy_publisher(self, publisher):
        pass

    def end_subscriptions(self, topic):
        pass

    def publish(self, publisher, message, decided_s=0.0):
        self.published.append((publisher.topic_name, message))

    def get_publishers_info_by_topic(self, topic):
        return [each for each in self.publishers if getattr(each, "topic", topic) == topic]

    def get_subscriptions_info_by_topic(self, topic):
        return self.subscribers

    def get_namespace(self):
        return "/"

    # Services.

    def make_client(self, kind, name):
        return PlainService(self, kind, name)
