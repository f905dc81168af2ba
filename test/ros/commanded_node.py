# SPDX-License-Identifier: Apache-2.0
"""CommandedNode: a bridge from the view of its command topics and its hold, without DDS, with a fake clock."""

from functools import partial
from types import SimpleNamespace

from geometry_msgs.msg import TwistStamped
from plain_node import PlainNode
from rclpy.exceptions import InvalidHandle
from std_srvs.srv import SetBool
from twists import twist
from waiting_messages import WaitingMessages

from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.ros.commands import command_reports, command_topics, other_nodes
from drone_bridge.ros.hold import hold
from drone_bridge.ros.hold.hold import REFUSED, Hold
from drone_bridge.ros.node import limit_reports as limits
from drone_bridge.ros.node.protocol_node import REFUSED_COMMANDS
from drone_bridge.ros.streams import ignore
from drone_bridge.ros.time import time_from_seconds

#: Offset of the machine's clock to the steady one.
EPOCH_S = 1_700_000_000.0


class CommandedNode(PlainNode):
    """Bridge with a fake clock. `send` publishes on a topic."""

    def __init__(self, clock, *, is_time_simulated=False, **parameters):
        super().__init__(**{"frame_prefix": "", "odom_frame": "odom", **parameters})
        self._clock = clock
        self.is_time_simulated = is_time_simulated
        self.observed = ObservedMotion(lambda: self.now_s)
        self.latched, self.report.warn = [], self._warn
        self.each, self.take, self.types, self.wakes, self.on_their_way = [], {}, {}, 0, []
        self.vehicles = []  # others that follow its commands
        self.listened = {}  # messages with their infos, that only listeners take
        self.waiting, self.posted, self.executor_wakes, self.intake = {}, [], 0, None
        self.hold = Hold(self, is_server=False)

    def _warn(self, sentence, count=""):
        (self.warned if count in (REFUSED, REFUSED_COMMANDS) else self.logged).append(sentence)

    def follow(self, commands):
        """Let an arbiter decide on the commands of these topics."""
        self.arbiter, self.others = commands.arbiter, commands._others

    # Methods that CommandTopics and Hold need.

    def get_fully_qualified_name(self):
        return "/bridge"

    def resolve_topic_name(self, topic):
        return "/" + topic.lstrip("/")

    def get_clock(self):
        now = SimpleNamespace(to_msg=self.stamp)
        return SimpleNamespace(now=lambda: now, ros_time_is_active=self.is_time_simulated)

    def create_publisher(self, kind, topic, qos, **_):
        return SimpleNamespace(publish=self.latched.append, topic_name=topic)

    def undelivered(self, topic):
        self.on_their_way.append(topic)

    def each_second(self, call):
        self.each.append(call)

    def make_ticker(self, name, period_s, call):
        self.each.append(call)

    def count_subscribers(self, topic):
        return int(topic.removesuffix("/helm") in self.vehicles)

    def get_subscriptions_info_by_topic(self, topic):
        return [
            SimpleNamespace(node_namespace="/", node_name=each.lstrip("/"), topic_type="geometry_msgs/msg/Twist")
            for each in self.vehicles
        ]

    def count_publishers(self, topic):
        return len(self.get_publishers_info_by_topic(topic))

    def make_subscription(self, kind, topic, callback, qos):
        self.take[topic] = callback

    def create_subscription(self, kind, topic, callback, qos, **_):
        if callback is ignore:
            waiting = self.listened.setdefault(topic, [])
            return WaitingMessages(kind, qos, waiting)
        if self.types.setdefault(topic, kind) is not kind:
            raise InvalidHandle("DDS allows one type of a topic")
        self.take[topic] = callback
        return WaitingMessages(kind, qos, self.waiting.setdefault(topic, []))

    def end_subscriptions(self, topic):
        self.types.pop(topic, None)
        self.waiting.pop(topic, None)

    def keep_subscription(self, subscription):
        pass

    def make_guard_condition(self, call):
        return SimpleNamespace(trigger=partial(self._wake_executor, call))

    def _wake_executor(self, call):
        self.executor_wakes += 1
        call()

    def post(self, work):
        self.posted.append(work)

    def wake(self):
        self.wakes += 1

    # Methods for tests.

    @property
    def now_s(self):
        return self._clock.now_s

    @now_s.setter
    def now_s(self, now_s):
        self._clock.now_s = now_s

    def stamp(self, ago_s=0.0):
        """Return the machine's clock at that age. The simulation's clock started with the steady one."""
        return time_from_seconds(self.now_s - ago_s + (0.0 if self.is_time_simulated else EPOCH_S))

    def send(self, topic, message=None, ago_s=0.0, **axes):
        """Deliver a message with a stamp of that age; return the resulting command, and its source."""
        topic = topic if topic in self.take else f"/{topic}"
        if message is None:
            message = (
                twist(**axes) if topic.lstrip("/") in ("cmd_vel", "cmd_vel_goal") else TwistStamped(twist=twist(**axes))
            )
        if hasattr(message, "header") and ago_s is not None:
            message.header.stamp = self.stamp(ago_s)
        self.take[topic](message)
        return self.decided()

    def decided(self):
        decision = self.arbiter.decide(self.now_s)
        return decision.rank, decision.command

    def call_hold(self, data):
        return self.serve(SetBool.Request(data=data), SetBool.Response())

    @property
    def counts(self):
        return dict(self.report.counts)

    def pass_second(self):
        for call in self.each:
            call()


def commanded_nodes(monkeypatch, home):
    """Return the constructor of such nodes, with a common clock that the test advances.

    `home` is the folder of hold files.
    """
    monkeypatch.setenv("ROS_HOME", str(home))
    clock = SimpleNamespace(now_s=100.0)
    for module in (command_reports, command_topics, hold, limits, other_nodes):
        monkeypatch.setattr(module, "elapsed_s", lambda: clock.now_s)
    return partial(CommandedNode, clock)
