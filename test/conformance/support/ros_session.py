# SPDX-License-Identifier: Apache-2.0
"""RosSession: ROS node for tests, which spins in a thread, and lets a test wait for messages."""

import contextlib
import faulthandler
import itertools
import sys
import threading
import time

import pytest
import rclpy
from inbox import Inbox
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from patience import TIMEOUT_S, wait_until
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import SetBool, Trigger

from drone_bridge.ros.service_responses import resend_if_lost
from drone_bridge.ros.time import NANOSECONDS

LEADS_TO = {
    "configure": State.PRIMARY_STATE_INACTIVE,
    "activate": State.PRIMARY_STATE_ACTIVE,
    "deactivate": State.PRIMARY_STATE_INACTIVE,
    "cleanup": State.PRIMARY_STATE_UNCONFIGURED,
}


#: Text of a refusal of a request that may be stale after a stall.
CALL_AGAIN = "Please call again."
#: Time for a service to discover a client that has discovered it.
FINDING_S = 3.0


class RosSession:
    """Node with an executor in a thread and a separate context."""

    def __init__(self, name="test_session"):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node(name, context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._idle_nodes = []
        self._others = []
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def _spin(self):
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()

    def create_service(self, service_type, name, serve):
        """Serve, even for a client that has discovered the service before it was discovered."""
        resend_if_lost(self.node, self.node.create_service(service_type, name, serve))

    def create_task(self, function, *args):
        """Call a function in the executor. Return the future of its result."""
        return self._executor.create_task(function, *args)

    def close(self):
        # In a thread: Fast DDS may lock up for good while an endpoint goes and the news of another's end comes in (its
        # issue 6502), and then this test fails, and not all that are to follow.
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(TIMEOUT_S)
        if closing.is_alive():
            faulthandler.dump_traceback(sys.__stderr__)  # by which the entry's runner knows a lock-up
            raise AssertionError("the session was not closed in time")

    def _close(self):
        for node in self._others:
            node.leave()
        # The node may be destroyed only when it is no longer spun.
        self._executor.shutdown()
        self._thread.join()
        for node in (self.node, *self._others, *self._idle_nodes):
            node.destroy_node()
        rclpy.shutdown(context=self.context)

    def run(self, node_type, **parameters):
        """Start a node of the package in this process. It ends with the session."""
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        node = node_type(context=self.context, parameter_overrides=overrides)
        self._others.append(node)
        self._executor.add_node(node)
        assert node.start()
        return node

    def idle_node(self):
        """Return a node that is not spun."""
        self._idle_nodes.append(rclpy.create_node("idle", context=self.context))
        return self._idle_nodes[-1]

    def subscribe(self, message_type, topic, qos=10):
        inbox = Inbox()
        self.node.create_subscription(message_type, topic, inbox.put, qos)
        return inbox

    def publisher(self, message_type, topic, qos=1, subscribers=1):
        """Return a publisher that has discovered its subscribers."""
        publisher = self.node.create_publisher(message_type, topic, qos)
        wait_until(lambda: publisher.get_subscription_count() >= subscribers, f"a subscriber of {topic}")
        return publisher

    def publish_fresh(self, publisher, message):
        """Publish a message with a header and a current stamp."""
        message.header.stamp = self.node.get_clock().now().to_msg()
        publisher.publish(message)

    def set_parameters(self, node, **values):
        """Set parameters of another node, and return the results."""
        parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        request = SetParameters.Request(parameters=parameters)
        return self.call(SetParameters, f"{node}/set_parameters", request).results

    def parameters(self, node):
        """Return the values of all parameters of another node, by name."""
        names = self.call(ListParameters, f"{node}/list_parameters", ListParameters.Request()).result.names
        values = self.call(GetParameters, f"{node}/get_parameters", GetParameters.Request(names=names)).values
        return {name: parameter_value_to_python(value) for name, value in zip(names, values, strict=True)}

    def transition(self, node, *names):
        """Bring a lifecycle node through transitions, such as deactivate."""
        service = f"{node}/change_state"
        client = self.node.create_client(ChangeState, service)
        assert client.wait_for_service(TIMEOUT_S), f"no service {service}"
        for number, name in enumerate(names):
            transition = Transition(id=getattr(Transition, f"TRANSITION_{name.upper()}"))
            request = ChangeState.Request(transition=transition)
            answer = self.answer(client, request, TIMEOUT_S)
            if answer is None and number == 0:
                # The first request of a client, or its answer, is lost where the service has not discovered all of the
                # client yet. For no other reason is it made again, and the state says which of the two was lost.
                if self._state_of(node) == LEADS_TO[name]:
                    continue
                answer = self.answer(client, request, TIMEOUT_S)
            assert answer is not None, f"{service} did not answer within {TIMEOUT_S} s"
            assert answer.success, f"{node} refused to {name}"

    def _state_of(self, node):
        return self.call(GetState, f"{node}/get_state", GetState.Request()).current_state.id

    def call(self, service_type, name, request, timeout_s=TIMEOUT_S):
        client = self.node.create_client(service_type, name)
        assert client.wait_for_service(timeout_s), f"no service {name}"
        if (answer := self.answer(client, request, timeout_s)) is None:
            # Shows whether the request or the response was lost.
            again = self.answer(client, request, 10.0)
            raise AssertionError(f"{name} did not answer within {timeout_s} s; asked once more it said: {again}")
        return answer

    def client(self, service_type, name):
        """Return a client that the service has discovered. Earlier requests are lost, without an event."""
        client = self.node.create_client(service_type, name)
        assert client.wait_for_service(TIMEOUT_S), f"no service {name}"
        time.sleep(FINDING_S)
        return client

    @staticmethod
    def answer(client, request, timeout_s):
        """Return the response of a client's service. None on a timeout."""
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        return future.result() if done.wait(timeout_s) else None

    def trigger(self, name):
        """Call a std_srvs/Trigger, again if the node reports a stall of the machine."""
        return self.call_again(Trigger, name, Trigger.Request())

    def switch(self, name, is_on):
        """Call a std_srvs/SetBool likewise."""
        return self.call_again(SetBool, name, SetBool.Request(data=is_on))

    def call_again(self, service_type, name, request):
        """Call a service with `message` in its response likewise."""
        until_s = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.call(service_type, name, request)
            if CALL_AGAIN not in answer.message or time.monotonic() > until_s:
                return answer


def module_ros(name="test_session"):
    """Return the fixture `ros` for a file whose tests share one session: `ros = module_ros()`."""

    @pytest.fixture(scope="module", name="ros")
    def fixture():
        session = RosSession(name)
        yield session
        session.close()

    return fixture


@contextlib.contextmanager
def repeating(publish, period_s=0.02):
    """Call `publish` with 1, 2, 3 and so on within the `with` block."""
    done = threading.Event()

    def repeat():
        for number in itertools.count(1):
            if done.wait(period_s):
                return
            publish(number)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def nanoseconds(stamp):
    return stamp.sec * NANOSECONDS + stamp.nanosec
