# SPDX-License-Identifier: Apache-2.0
"""ControllerNode: what a behaviour of drone_controller asks of its node, without ROS and in no time."""

from types import SimpleNamespace

from plain_node import PlainNode
from waiting_messages import WaitingMessages

from drone_bridge.controllers.drone_controller import BEHAVIOURS, PARAMETERS
from drone_bridge.ros.streams import PolledCallbackGroup
from drone_bridge.ros.time import time_from_seconds


class ControllerNode(PlainNode):
    """A node with one behaviour. What it publishes is in `published`, by topic; what it logs, in `lines`."""

    def __init__(self, clock, behaviour, **parameters):
        """`clock[0]` is the steady time in s; the parameters of the behaviour are without its name."""
        super().__init__()
        self._clock, self._timers, self._services = clock, [], {}
        self._heard, self._waiting = {}, {}
        self.published, self.lines, self.clients = {}, self.logged, []
        values = {declaration.name: declaration.default for declaration in PARAMETERS}
        given = {f"{behaviour}.{name}": value for name, value in parameters.items()}
        assert given.keys() <= values.keys()
        self.behaviour = BEHAVIOURS[behaviour].start(self, values | given)

    # What a node offers.

    def create_subscription(self, kind, topic, heard, qos, **options):
        if not isinstance(options.get("callback_group"), PolledCallbackGroup):
            self._heard[topic] = heard
        return WaitingMessages(kind, qos, self._waiting.setdefault(topic, []))

    def create_publisher(self, kind, topic, qos, **options):
        messages = self.published.setdefault(topic, [])
        return SimpleNamespace(
            topic_name=topic, msg_type=kind, publish=messages.append, wait_for_all_acked=lambda timeout: True
        )

    def create_timer(self, period_s, call, callback_group, clock):
        self._timers.append([self._clock[0] + period_s, period_s, call])

    def create_service(self, kind, name, serve):
        self._services[name] = kind, serve

    def create_client(self, kind, name):
        self.clients.append(name)
        return SimpleNamespace(service_is_ready=lambda: False)

    def get_name(self):
        return "drone_controller"

    def count_subscribers(self, topic):
        return 0

    def get_parameter(self, name):
        assert name == "use_sim_time"
        return SimpleNamespace(value=False)

    def get_clock(self):
        now = SimpleNamespace(to_msg=lambda: time_from_seconds(self._clock[0]))
        return SimpleNamespace(now=lambda: now)

    # What a test does.

    def say(self, **messages):
        """Have others publish messages, by topic with `__` for a slash."""
        for name, message in messages.items():
            topic = name.replace("__", "/")
            if heard := self._heard.get(topic):
                heard(message)
            elif topic in self._waiting:
                self._waiting[topic].append(message)

    def call(self, name):
        kind, serve = self._services[name]
        return serve(kind.Request(), kind.Response())

    def run(self, seconds):
        """Let time pass, in which timers run when they are due."""
        end_s = self._clock[0] + seconds
        while (timer := min(self._timers, key=lambda each: each[0]))[0] <= end_s:
            self._clock[0] = max(self._clock[0], timer[0])
            timer[0] += timer[1]
            timer[2]()
        self._clock[0] = end_s

    def commands(self, topic):
        """Return what it has commanded since the last time."""
        messages = self.published.setdefault(topic, [])
        taken = messages.copy()
        messages.clear()
        return taken

    @property
    def state(self):
        """The newest state."""
        return self.published["~/state"][-1]
