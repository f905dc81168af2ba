# SPDX-License-Identifier: Apache-2.0
"""VirtualNode: rclpy's LifecycleNode without DDS, in virtual time, below real nodes; and the graph between them.

`class LifeBridge(RobotBridge, VirtualNode)` is the real bridge: VirtualNode stands between it and rclpy's class.
"""

import copy
from collections import defaultdict, deque
from types import SimpleNamespace

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future

from drone_bridge.ros.time import time_from_nanoseconds

#: Time that a message or a call takes, s, and period at which waiting callbacks look again.
TRAVEL_S, POLL_S = 0.0005, 0.02


class Graph:
    """Topics, services and actions by full name."""

    def __init__(self, life):
        self.life = life
        self.subscriptions, self.publishers = defaultdict(list), defaultdict(list)
        self.services, self.actions, self.action_clients = {}, {}, 0
        #: Number of the present message among those of its publisher.
        self.number = 0

    def publish(self, topic, message, number=0):
        """Publish from a program outside of any node."""
        self.number = number
        for each in tuple(self.subscriptions[topic]):
            each.put(message)

    def tap(self, topic, call):
        """Hear a topic's messages at once, without being a node."""
        self.subscriptions[topic].append(SimpleNamespace(put=call, is_latched=False))

    def call(self, name, request, done):
        """Call a service. `done` gets the response, or None without a server."""
        if service := self.services.get(name):
            service.serve(request, done)
        else:
            done(None)


class Publisher:
    """See rclpy.publisher."""

    def __init__(self, node, kind, topic, qos):
        self._node, self.msg_type, self.topic_name, self.qos_profile = node, kind, topic, qos
        self._latched = deque(maxlen=1) if qos.durability == DurabilityPolicy.TRANSIENT_LOCAL else None
        self._matched, self._number = node.graph.subscriptions[topic], 0
        node.graph.publishers[topic].append(self)
        for each in self._matched:
            self.repeat_to(each)

    def publish(self, message):
        if self._latched is not None:
            message = copy.deepcopy(message)  # a node may change and publish its own one again
            self._latched.append(message)
        if self._matched:
            self._number += 1
            self._node.graph.publish(self.topic_name, message, self._number)

    def repeat_to(self, subscription):
        """Send the last message to a later subscription, if both sides want that."""
        for message in self._latched or () if subscription.is_latched else ():
            subscription.put(message)

    def get_subscription_count(self):
        return len(self._matched)

    def wait_for_all_acked(self, _):
        return True


class Subscription:
    """See rclpy.subscription. Its handle is the subscription itself."""

    raw = False

    def __init__(self, node, kind, topic, call, qos, group):
        self._node, self.msg_type, self.topic_name, self._call, self._group = node, kind, topic, call, group
        self.qos_profile, self.handle = qos, self
        self._queue = deque(maxlen=qos.depth or 1)
        self.is_latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        self._is_scheduled = False
        node.graph.subscriptions[topic].append(self)
        for publisher in node.graph.publishers[topic]:
            publisher.repeat_to(self)

    def put(self, message):
        self._queue.append((message, {"publication_sequence_number": self._node.graph.number}))
        self.schedule()

    def schedule(self):
        if not (self._is_scheduled or getattr(self._group, "is_polled", False)):
            self._is_scheduled = True
            self._node.process.after(TRAVEL_S, self._take)

    def _take(self):
        self._is_scheduled = False
        while self._queue and not getattr(self._group, "is_polled", False):
            self._call(self._queue.popleft()[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def take_message(self, kind, raw):
        return self._queue.popleft() if self._queue else None


class Service:
    """See rclpy.service: the server."""

    def __init__(self, node, kind, call):
        self._node, self._kind, self._call = node, kind, call

    def serve(self, request, done):
        answer = lambda response: self._node.graph.life.after(TRAVEL_S, lambda: done(response))  # noqa: E731
        self._node.process.after(TRAVEL_S, lambda: self._node.executor.run(self._answer(request, answer)))

    async def _answer(self, request, done):
        response = self._call(request, self._kind.Response())
        done(await response if hasattr(response, "__await__") else response)

    def send_response(self, response, header):
        raise NotImplementedError


class Client:
    """See rclpy.client."""

    def __init__(self, node, name):
        self._node, self.srv_name = node, name

    def service_is_ready(self):
        return self.srv_name in self._node.graph.services

    def call_async(self, request):
        future = Future()
        node = self._node
        node.graph.call(
            self.srv_name, request, lambda response: response and node.process.run(lambda: future.set_result(response))
        )
        return future


class Timer:
    """See rclpy.timer."""

    def __init__(self, node, period_s, call):
        self._node, self._call, self.timer_period_ns, self._number = node, call, round(1e9 * period_s), 0
        self.reset()

    def reset(self):
        self._number += 1
        number = self._number
        self._node.process.every(lambda: self.timer_period_ns / 1e9, lambda: number == self._number and self._fire())

    def cancel(self):
        self._number += 1

    def _fire(self):
        number = self._number
        self._call()
        return number == self._number


class Executor:
    """Executor of coroutines and of futures' callbacks."""

    def __init__(self, process):
        self._process = process

    def run(self, coroutine):
        """Execute a coroutine, which looks for its future again and again, as rclpy's."""
        try:
            coroutine.send(None)
        except StopIteration:
            return
        self._process.after(POLL_S, lambda: self.run(coroutine))

    def wake(self):
        """Do nothing: coroutines look by themselves."""

    def create_task(self, call, *arguments):
        self._process.after(0.0, lambda: call(*arguments))


class ActionServer:
    """See rclpy.action. A goal's handle is an ActionGoal."""

    def __init__(self, node, kind, name, execute_callback, **_):
        self._node, self._name, self._execute = node, node.resolve_topic_name(name), execute_callback
        node.graph.actions[self._name] = self

    def send(self, goal):
        """Execute a goal, an ActionGoal."""
        self._node.process.after(TRAVEL_S, lambda: self._node.executor.run(self._run(goal)))

    async def _run(self, goal):
        goal.finish(await self._execute(goal))

    def destroy(self):
        self._node.graph.actions.pop(self._name, None)


class ActionGoal:
    """Goal of a program, and the handle that the server gets."""

    def __init__(self, request):
        self.request, self.status, self.result, self.feedback = request, "", None, None
        self.is_cancel_requested = False

    def publish_feedback(self, feedback):
        self.feedback = feedback

    def succeed(self):
        self.status = "succeeded"

    def abort(self):
        self.status = "aborted"

    def canceled(self):
        self.status = "canceled"

    def finish(self, result):
        self.result = result


class Parameters:
    """Part of VirtualNode: parameters with their callbacks."""

    def _begin_parameters(self, overrides):
        self._values, self._given, self._descriptors = {}, dict(overrides), {}
        self._before, self._checks, self._after = [], [], []
        self.declare_parameter("use_sim_time", False)

    def declare_parameter(self, name, default, descriptor=None, *, ignore_override=False):
        value = default if ignore_override else self._given.get(name, default)
        self._values[name], self._descriptors[name] = Parameter(name, value=value), descriptor or SimpleNamespace()
        return self._values[name]

    def undeclare_parameter(self, name):
        del self._values[name]

    def has_parameter(self, name):
        return name in self._values

    def get_parameter(self, name):
        return self._values[name]

    def describe_parameter(self, name):
        return self._descriptors[name]

    def set_parameters(self, parameters):
        return [self.set_parameters_atomically([each]) for each in parameters]

    def set_parameters_atomically(self, parameters):
        for call in self._before:
            parameters = call(parameters)
        for call in self._checks:
            if not (result := call(parameters)).successful:
                return result
        self._values |= {each.name: each for each in parameters}
        for call in self._after:
            call(parameters)
        return SetParametersResult(successful=True)

    def add_on_set_parameters_callback(self, call):
        self._checks.append(call)

    def add_pre_set_parameters_callback(self, call):
        self._before.append(call)

    def add_post_set_parameters_callback(self, call):
        self._after.append(call)

    def remove_post_set_parameters_callback(self, call):
        self._after.remove(call)


class VirtualNode(Parameters, LifecycleNode):
    """Node of a process of the life. `process`, `graph` and `log` are set by `node_of`."""

    default_callback_group = None
    context = SimpleNamespace(get_domain_id=lambda: 7, ok=lambda: True)

    subscriptions = publishers = ()  # rclpy has lists of its own ones

    def __init__(self, name, *, parameter_overrides=None, **_):
        self._name_, self.executor_ = name, Executor(self.process)
        self._state_machine = SimpleNamespace(destroy_when_not_in_use=lambda: None)
        self._begin_parameters(parameter_overrides or {})

    @property
    def executor(self):
        return self.executor_

    # Names.

    def get_name(self):
        return self._name_

    def get_namespace(self):
        return "/"

    def get_fully_qualified_name(self):
        return f"/{self._name_}"

    def resolve_topic_name(self, topic, **_):
        return f"/{self._name_}{topic[1:]}" if topic.startswith("~") else f"/{topic.lstrip('/')}"

    resolve_service_name = resolve_topic_name

    def get_logger(self):
        return SimpleNamespace(
            info=lambda line: self.log("info", line),
            warning=lambda line: self.log("warning", line),
            error=lambda line: self.log("error", line),
        )

    def get_clock(self):
        now_ns = round(1e9 * (1_800_000_000.0 + self.process.life.now_s))
        now = SimpleNamespace(nanoseconds=now_ns, to_msg=lambda: time_from_nanoseconds(now_ns))
        return SimpleNamespace(now=lambda: now, ros_time_is_active=False)

    # Entities.

    def create_publisher(self, kind, topic, qos, **_):
        return Publisher(self, kind, self.resolve_topic_name(topic), _profile(qos))

    def create_subscription(self, kind, topic, call, qos, *, callback_group=None, **_):
        return Subscription(self, kind, self.resolve_topic_name(topic), call, _profile(qos), callback_group)

    def create_service(self, kind, name, call, **_):
        made = self.graph.services[self.resolve_service_name(name)] = Service(self, kind, call)
        return made

    def create_client(self, kind, name, **_):
        return Client(self, self.resolve_service_name(name))

    def create_timer(self, period_s, call, **_):
        return Timer(self, period_s, call)

    def create_guard_condition(self, call, **_):
        return SimpleNamespace(trigger=lambda: self.process.after(0.0, lambda: (self._look(), call())))

    def _look(self):
        """Take what waits on the topics that a loop's thread has handed back."""
        for each in self._own(self.graph.subscriptions):
            each.schedule()

    def destroy_publisher(self, publisher):
        self.graph.publishers[publisher.topic_name].remove(publisher)

    def destroy_subscription(self, subscription):
        self.graph.subscriptions[subscription.topic_name].remove(subscription)

    def destroy_service(self, service):
        self.graph.services = {name: each for name, each in self.graph.services.items() if each is not service}

    def destroy_timer(self, timer):
        timer.cancel()

    def destroy_client(self, _):
        pass

    destroy_guard_condition = destroy_client

    def destroy_node(self):
        """Remove all that is left of a process that has ended, in order or not."""
        for each in (self.graph.subscriptions, self.graph.publishers):
            for endpoint in self._own(each):
                each[endpoint.topic_name].remove(endpoint)
        for each in (self.graph.services, self.graph.actions):
            for name in [name for name, server in each.items() if server._node is self]:
                del each[name]

    def _own(self, endpoints):
        return [each for every in endpoints.values() for each in every if getattr(each, "_node", None) is self]

    # The graph.

    def get_publishers_info_by_topic(self, topic):
        return list(map(_endpoint_info, self.graph.publishers[topic]))

    def get_subscriptions_info_by_topic(self, topic):
        return [_endpoint_info(each) for each in self.graph.subscriptions[topic] if isinstance(each, Subscription)]

    def count_publishers(self, topic):
        return len(self.graph.publishers[self.resolve_topic_name(topic)])

    def count_subscribers(self, topic):
        return len(self.graph.subscriptions[topic])

    def count_clients(self, name):
        return self.graph.action_clients

    def get_topic_names_and_types(self):
        return [
            (topic, [_type_of(each.msg_type, "msg")])
            for topic, every in self.graph.subscriptions.items()
            for each in every
            if hasattr(each, "msg_type")
        ]

    def get_service_names_and_types(self):
        return [(name, [_type_of(each._kind, "srv")]) for name, each in self.graph.services.items()]

    # The lifecycle.

    def on_configure(self, state):
        return TransitionCallbackReturn.SUCCESS

    on_activate = on_deactivate = on_cleanup = on_shutdown = on_configure

    def trigger_configure(self):
        return self.on_configure(None)

    def trigger_activate(self):
        return self.on_activate(None)

    def trigger_deactivate(self):
        return self.on_deactivate(None)

    def trigger_cleanup(self):
        return self.on_cleanup(None)


def _endpoint_info(endpoint):
    return SimpleNamespace(
        node_name=endpoint._node.get_name(),
        node_namespace="/",
        topic_type=_type_of(endpoint.msg_type, "msg"),
        endpoint_gid=(id(endpoint),),
    )


def _type_of(kind, folder):
    return "/".join((kind.__module__.split(".")[0], folder, kind.__name__))


def _profile(qos):
    return QoSProfile(depth=qos) if isinstance(qos, int) else qos


def node_of(kind, process, graph, log, **options):
    """Create a real node of a class, in a process. `log` gets the level and the line of what it logs."""
    own = {"process": process, "graph": graph, "log": staticmethod(log)}
    return type(kind.__name__, (kind, VirtualNode), own)(**options)
