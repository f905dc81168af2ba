# SPDX-License-Identifier: Apache-2.0
"""What all bridges have in common: a lifecycle, a link with a thread of its own, diagnostics."""

import copy
import functools
import threading
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from drone_bridge.bridges.statistics import LinkStatistics
from drone_bridge.links.backoff import Backoff
from drone_bridge.links.cancellation import Cancellation
from drone_bridge.links.connector import address_name
from drone_bridge.links.errors import LinkCancelledError, LinkError
from drone_bridge.links.tcp import TcpConnector, TcpListener
from drone_bridge.log_limiter import LogLimiter
from drone_bridge.parameters import UNCONFIGURED, DeclaredParameters, ParameterDeclaration
from drone_bridge.protocols.errors import RemoteProtocolError
from drone_bridge.translate.time import NANOSECONDS

DIAGNOSTICS_PERIOD_S: Final = 1.0
STOP_TIMEOUT_S: Final = 2.0
#: While the whole process is held up, only one of so many shares of that time goes by.
_STOP_SHARES: Final = 20

Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


class Stream(Protocol):
    """An open link to one peer."""

    @property
    def peer(self) -> str:
        """Who it is, for people."""

    def close(self) -> None:
        """Close at once."""


class Endpoint(Protocol):
    """Where links to a peer come from, for instance TcpConnector and TcpListener."""

    @property
    def backoff(self) -> Backoff:
        """How long to wait between attempts."""

    @property
    def port(self) -> int:
        """The port in use."""

    def open(self) -> Stream:
        """Wait for a peer. Raises LinkCancelledError."""

    def close(self) -> None:
        """Give back what it holds."""


def common_parameters(
    port: int, port_meaning: str, roles: tuple[str, ...] = ("connect", "listen")
) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters that every bridge has, the first of the roles being the default."""
    return (
        ParameterDeclaration("role", roles[0], "Who opens the connection.", choices=roles),
        ParameterDeclaration("host", "127.0.0.1", "The peer's address, or when listening the address of our own side."),
        ParameterDeclaration("port", port, port_meaning, range=(0 if "listen" in roles else 1, 65535)),
        ParameterDeclaration(
            "actual_port", 0, "The port in use: tells which one a port of 0 has become.", read_only=True
        ),
        ParameterDeclaration(
            "command_timeout",
            0.5,
            "Seconds without a command after which the vehicle gets the neutral one.",
            range=(0.01, 60.0),
            live=True,
        ),
        ParameterDeclaration("frame_prefix", "", "Put before the name of every tf frame, for instance drone1/."),
        ParameterDeclaration("autostart", True, "Configure and activate without being asked to."),
    )


def _said_when_it_fails(transition: Transition) -> Transition:
    """Log why a transition failed. rclpy alone would say nothing."""

    @functools.wraps(transition)
    def guarded(node: "BridgeNode", state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except (LinkError, ValueError) as error:
            node.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception:
            if node.context.ok():  # else ROS is being shut down, and everything fails
                node.get_logger().error(traceback.format_exc())
            return TransitionCallbackReturn.ERROR

    return guarded


class BridgeNode(LifecycleNode):
    """A lifecycle node that keeps one link: publishers from configure on, the link while active.

    The link's thread connects, reads, translates and publishes; callbacks of the executor only leave something for
    it. A link that fails is opened again for as long as the node is active.
    """

    #: The counts of LinkStatistics that /diagnostics shows as rates, and those whose growth is a warning.
    rates: tuple[str, ...] = ()
    problems: tuple[str, ...] = ("rejected input", "lost connections", "internal errors", "refused peers")
    #: What a link that works does, for logs and /diagnostics.
    open_state = "connected"

    def __init__(self, name: str, declarations: Iterable[ParameterDeclaration]) -> None:
        super().__init__(name)
        self.parameters = DeclaredParameters(self, declarations)
        self.statistics = LinkStatistics(self.open_state)
        self._endpoint: Endpoint | None = None
        self._cancellation: Cancellation | None = None
        self._thread: threading.Thread | None = None
        self._leaving = threading.Lock()
        self._log_limiter = LogLimiter()
        self._made: list[tuple[Callable[[Any], Any], Any]] = []  # how to destroy what configure created

    # What a bridge has to provide.

    @abstractmethod
    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions. Raises ValueError with a sentence."""

    @abstractmethod
    def converse(self, stream: Any) -> None:
        """Talk to a peer until it ends the conversation or anything is raised.

        When LinkCancelledError ends it, the vehicle has to be left with a neutral command.
        """

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Return where links come from: TCP, unless a bridge says otherwise. Raises LinkError or ValueError."""
        host, port = self.parameters["host"], self.parameters["port"]
        if self.parameters["role"] == "listen":
            listener = TcpListener(host, port, cancellation, self._peer_refused)
            self.get_logger().info(f"Waiting for a peer on {address_name(host, listener.port)}.")
            return listener
        if port == 0:
            raise ValueError("port is 0, and has to be from 1 to 65535 when the role is connect.")
        return TcpConnector(host, port, cancellation, self._connecting_failed)

    def stop_waiting(self) -> None:
        """End whatever `converse` waits for beside the link; called when the link is cancelled."""

    # What a bridge can use.

    def make_publisher(self, message_type: type, topic: str, qos: QoSProfile | int) -> "Publisher[Any]":
        """Create a publisher that is enabled while active and whose QoS can be overridden by parameters."""
        options = QoSOverridingOptions.with_default_policies()
        publisher: Publisher[Any] = self.create_lifecycle_publisher(
            message_type,
            topic,
            copy.copy(qos),  # an override changes the profile that it is given, and others may have the same
            qos_overriding_options=options,
        )
        self._made.append((self.destroy_lifecycle_publisher, publisher))
        return publisher

    def make_subscription(
        self,
        message_type: type,
        topic: str,
        callback: Callable[[Any], Any],
        depth: int,
        callback_group: CallbackGroup | None = None,
    ) -> None:
        """Create a subscription whose QoS can be overridden by parameters."""
        options = QoSOverridingOptions.with_default_policies()
        subscription = self.create_subscription(
            message_type, topic, callback, depth, callback_group=callback_group, qos_overriding_options=options
        )
        self._made.append((self.destroy_subscription, subscription))

    def publish(self, publisher: "Publisher[Any]", message: Any) -> None:
        """Publish from the link's thread; what can't be published is counted and forgotten."""
        try:
            publisher.publish(message)
        except (rclpy_implementation.RCLError, InvalidHandle):
            # A writer of reliable messages was overrun, or ROS is already shutting down.
            self.statistics.counts["dropped messages"] += 1

    def is_wanted(self, publisher: "Publisher[Any]") -> bool:
        """Return whether anybody subscribes, so that what nobody wants need not be made."""
        try:
            return publisher.get_subscription_count() > 0
        except (rclpy_implementation.RCLError, InvalidHandle):
            return False

    def now(self) -> Time:
        """Return the node's time. rclpy's own way to a message takes three times as long, too long for every frame."""
        clock: Any = self.get_clock()  # a ROSClock, whatever the stubs say
        nanoseconds = clock.now().nanoseconds if clock.ros_time_is_active else time.time_ns()
        return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)

    def opened(self) -> None:
        """Say that the peer has proved to be of use, so that a lost connection is worth trying again at once."""
        if self._endpoint:
            self._endpoint.backoff.reset()

    # The lifecycle.

    def start(self) -> bool:
        """Configure and activate, if autostart is true; return whether that worked."""
        if not self.parameters["autostart"]:
            return True
        success = TransitionCallbackReturn.SUCCESS
        return self.trigger_configure() == success and self.trigger_activate() == success

    @_said_when_it_fails
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters, create publishers and subscriptions, start to report."""
        self.statistics = LinkStatistics(self.open_state)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._made.append((self.destroy_publisher, self._diagnostics))
        # A steady clock: a simulation that stands still is no reason not to report.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._made.append((self.destroy_timer, self.create_timer(DIAGNOSTICS_PERIOD_S, self._report, clock=clock)))
        try:
            self.set_up()
        except ValueError:
            self._destroy_made()
            raise
        self.parameters.freeze("configured")
        return super().on_configure(state)

    @_said_when_it_fails
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the link, and keep it open from now on."""
        cancellation = Cancellation()
        endpoint = self.make_endpoint(cancellation)
        self.parameters.publish("actual_port", endpoint.port)
        # Publishers have to be enabled before the thread uses them.
        result = super().on_activate(state)
        thread = threading.Thread(
            target=self._keep_link,
            args=(endpoint, cancellation),
            name=f"{self.get_name()} link",
            daemon=True,  # it is waited for, but must not keep a process alive should it ever hang
        )
        with self._leaving:  # a thread that has not started can't be waited for
            self._endpoint, self._cancellation, self._thread = endpoint, cancellation, thread
            thread.start()
        return result

    @_said_when_it_fails
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Leave the vehicle with a neutral command and close the link."""
        self.leave()
        return super().on_deactivate(state)

    @_said_when_it_fails
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give back what configure created."""
        self._destroy_made()
        self.parameters.freeze(UNCONFIGURED)
        return TransitionCallbackReturn.SUCCESS

    @_said_when_it_fails
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Do what deactivate and cleanup do."""
        self.leave()
        self._destroy_made()
        return TransitionCallbackReturn.SUCCESS

    @_said_when_it_fails
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go back to unconfigured after a transition that raised."""
        self.leave()
        self._destroy_made()
        self.parameters.freeze(UNCONFIGURED)
        return TransitionCallbackReturn.SUCCESS

    def leave(self) -> None:
        """Leave the vehicle with a neutral command and close the link. May come from any thread, and twice."""
        with self._leaving:
            if not (self._thread and self._cancellation and self._endpoint):
                return
            self._cancellation.cancel()
            self.stop_waiting()
            for _ in range(_STOP_SHARES):
                if self._thread.is_alive():
                    self._thread.join(STOP_TIMEOUT_S / _STOP_SHARES)
            if self._thread.is_alive():
                self.get_logger().error(
                    f"The link's thread did not end within {STOP_TIMEOUT_S:g} s; it is left behind."
                )
            else:
                self._endpoint.close()
                self._cancellation.close()
            self._thread = self._cancellation = self._endpoint = None

    # The link's thread.

    def _keep_link(self, endpoint: Endpoint, cancellation: Cancellation) -> None:
        while not cancellation.is_set:
            self.statistics.state = "waiting for a peer"
            try:
                stream = endpoint.open()
            except LinkCancelledError:
                break
            except Exception:
                self.complain("internal errors", traceback.format_exc())
                cancellation.wait(endpoint.backoff.next_delay_s())
                continue
            self.statistics.state, self.statistics.peer = self.open_state, stream.peer
            self.statistics.counts["connections"] += 1
            self.get_logger().info(f"{self.open_state.capitalize()} to {stream.peer}.")
            try:
                self.converse(stream)
            except LinkCancelledError:
                pass
            except RemoteProtocolError as error:
                self.complain("rejected input", f"{error} The connection is closed, as its bytes can't be trusted.")
            except LinkError as error:
                self.complain("lost connections", str(error))
            except Exception:
                self.complain("internal errors", traceback.format_exc())
            finally:
                stream.close()
        self.statistics.state = "closed"

    def complain(self, count: str, sentence: str) -> None:
        """Count a problem, and log a sentence about it unless there are too many."""
        self.statistics.counts[count] += 1
        self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """Log a sentence about a peer or a command, unless there are too many."""
        self.statistics.last_error = sentence
        if line := self._log_limiter.admit(sentence):
            self.get_logger().warning(line)

    def _connecting_failed(self, sentence: str, delay_s: float) -> None:
        self.warn(f"{sentence} Trying again in {delay_s:.1f} s.")

    def _peer_refused(self, peer: str) -> None:
        self.complain(
            "refused peers", f"{peer} was refused: {self.statistics.peer} is connected, and one peer is served."
        )

    # Reports.

    def _report(self) -> None:
        report = DiagnosticArray()
        report.header.stamp = self.get_clock().now().to_msg()
        name = self.get_fully_qualified_name().lstrip("/")  # several vehicles report on the one topic
        report.status = [self.statistics.report(f"{name}: link", self.rates, self.problems)]
        self._diagnostics.publish(report)

    def _destroy_made(self) -> None:
        while self._made:
            destroy, entity = self._made.pop()
            destroy(entity)
