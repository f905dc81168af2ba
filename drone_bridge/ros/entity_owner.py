# SPDX-License-Identifier: Apache-2.0
"""EntityOwner: a lifecycle node with declared parameters that destroys at cleanup what it created at configure."""

import contextlib
import copy
import functools
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import CallbackGroup
from rclpy.client import Client
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.guard_condition import GuardCondition
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.timer import Timer

from drone_bridge.net.connector import LinkError
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration, has_value
from drone_bridge.ros.publishers import NO_EVENTS
from drone_bridge.ros.service_responses import resend_if_lost
from drone_bridge.ros.subscriptions import subscribe

Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


def log_failure(transition: Transition) -> Transition:
    """Wrap a transition of an EntityOwner to log why it failed, which rclpy does not do."""

    @functools.wraps(transition)
    def guarded(node: "EntityOwner", state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except (LinkError, ValueError) as error:
            node.transition_failed(error)
            return TransitionCallbackReturn.FAILURE
        except Exception:
            if node.context.ok():  # else ROS is being shut down, and everything fails
                node.get_logger().error(traceback.format_exc())
            return TransitionCallbackReturn.ERROR

    return guarded


class EntityOwner(LifecycleNode):
    """Makes publishers, subscriptions, clients, services and timers, and destroys them at cleanup."""

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration], **options: Any) -> None:
        """Make the node; the options are rclpy's, such as `namespace` and `parameter_overrides`."""
        #: Undoes what configure has done, last things first.
        self.cleanup = contextlib.ExitStack()
        super().__init__(name, **options)
        self.parameters = DeclaredParameters(self, declarations, keep_refused=True)

    def transition_failed(self, error: Exception) -> None:
        """Tell the user why a transition failed."""
        self.get_logger().error(str(error))

    def make_publisher(self, message_type: type, topic: str, qos: QoSProfile | int) -> "Publisher[Any]":
        """Create a publisher whose QoS can be overridden by parameters."""
        options = QoSOverridingOptions.with_default_policies()
        publisher: Publisher[Any] = self.create_publisher(
            message_type,
            topic,
            copy.copy(qos),  # an override changes the profile that it is given, and others may have the same
            event_callbacks=NO_EVENTS,
            qos_overriding_options=options,
        )
        self.cleanup.callback(self.destroy_publisher, publisher)
        return publisher

    def make_subscription(
        self,
        message_type: type,
        topic: str,
        callback: Callable[[Any], Any],
        depth: QoSProfile | int,
        callback_group: CallbackGroup | None = None,
    ) -> None:
        """Create a subscription whose QoS can be overridden by parameters; publishers that offer less are heard too."""
        options = QoSOverridingOptions.with_default_policies()
        group, keep = callback_group, self.keep_subscription
        subscribe(self, message_type, topic, callback, depth, callback_group=group, overridable=options, keep=keep)

    def keep_subscription(self, subscription: Any) -> None:
        """Destroy a subscription with what else configure has created."""
        self.cleanup.callback(self.destroy_subscription, subscription)

    def end_subscriptions(self, topic: str) -> None:
        """Destroy the subscriptions to a topic, which may have been made with `make_subscription`. For the executor."""
        name = self.resolve_topic_name(topic)
        for subscription in tuple(self.subscriptions):
            if subscription.topic_name == name:
                self.destroy_subscription(subscription)

    def make_client(self, service_type: type, name: str) -> "Client[Any, Any]":
        client: Client[Any, Any] = self.create_client(service_type, name)
        self.cleanup.callback(self.destroy_client, client)
        return client

    def make_guard_condition(self, callback: Callable[[], None]) -> GuardCondition:
        """Create a guard condition, which any thread may trigger to have the executor call back."""
        guard = self.create_guard_condition(callback)
        self.cleanup.callback(self.destroy_guard_condition, guard)
        return guard

    def make_timer(self, period_s: float, callback: Callable[[], None]) -> Timer:
        """Create a timer that runs even while simulated time stands still."""
        timer = self.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.cleanup.callback(self.destroy_timer, timer)
        return timer

    def make_service(
        self, service_type: type, name: str, callback: Callable[[Any, Any], Any], callback_group: CallbackGroup
    ) -> None:
        """Create a service below the node's name."""
        self.create_service(service_type, f"~/{name}", callback, callback_group=callback_group)

    def create_service(self, *what: Any, **options: Any) -> Any:
        """Create a service that loses no response, however late it is created, see `service_responses`."""
        service = super().create_service(*what, **options)
        resend_if_lost(self, service)
        return service

    def set_parameters_atomically(self, parameter_list: "list[Parameter[Any]]") -> SetParametersResult:
        """Set parameters, ignoring those that already have their value, even if they can't be changed now.

        So that what `ros2 param dump` wrote can be loaded again.
        """
        changed = [parameter for parameter in parameter_list if not has_value(self, parameter)]
        result = super().set_parameters_atomically(changed) if changed else SetParametersResult(successful=True)
        if result.successful:
            for parameter in parameter_list:
                self.parameters.refused.pop(parameter.name, None)
        return result

    def destroy_node(self) -> None:
        self.cleanup.close()
        super().destroy_node()
