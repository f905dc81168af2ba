# SPDX-License-Identifier: Apache-2.0
"""Vehicle for scripts and notebooks. Each call blocks until it is done, or raises VehicleError with a sentence.

    with drone_bridge.Vehicle("/drone") as drone:
        drone.take_off(1.5)
        drone.go_to(2.0, 0.0, 1.5, yaw=1.57)
        print(drone.pose, drone.battery)
        drone.land()

On Ctrl-C, Ctrl-Z, SIGTERM, a closed terminal or an exception, a vehicle that the script has commanded is held, unless
another goal has replaced its own. Without `with`, it is closed when the script ends. See docs/controllers.md.
"""

import atexit
import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

import rclpy
from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry, Path
from rclpy.action import ActionClient
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import BatteryState

from drone_bridge.action import FollowPath, GoTo, Land, TakeOff
from drone_bridge.motion.quaternions import euler_from_quaternion, quaternion_from_euler, unit_quaternion
from drone_bridge.ros.distributions import count_services
from drone_bridge.ros.hold.hold_services import HoldServices, commands_of, is_of, node_of
from drone_bridge.ros.process.environment import discovery_problem
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.topics.transforms import set_quaternion

#: Default timeout of discovery and of responses.
PATIENCE_S = 10.0
#: Retry period of an unanswered goal. The first may have arrived before its sender was discovered.
_RESEND_S = 2.0
_DISCOVERY_S = 2.0  # longest time between the discovery of two actions of a controller, or two nodes of a vehicle
_HOLD_S = 1.0  # timeout of the hold when a script ends with an exception
_SETTLED_S = 0.5  # without a new node of the vehicle, after which discovery is complete
#: Nodes that do not belong to one vehicle.
_OF_NO_VEHICLE = ("vehicle_client", "web_bridge", "recorder")
_POLL_S = 0.05  # polling period, within which Ctrl-C is handled
_MOST_NAMED = 5  # names in one sentence

_ODOMETRY = "nav_msgs/msg/Odometry"
#: Suffix of the goal service of an action.
_SEND_GOAL = "/_action/send_goal"


class VehicleError(RuntimeError):
    """Failure of a request to a vehicle, with a sentence as its text."""


class Pose(NamedTuple):
    """Pose of a vehicle in its odometry frame: m, and rad to the left of x."""

    x: float
    y: float
    z: float
    yaw: float


class Vehicle:
    """Client of one vehicle, and of its controller for goals."""

    def __init__(self, namespace: str = "", *, patience_s: float = PATIENCE_S) -> None:
        """Start discovery without waiting. The first call raises VehicleError if a node is missing.

        That is after `patience_s`, or after 2 s if another namespace has the node and this one has none.
        """
        self._namespace = f"/{namespace.strip('/')}".rstrip("/")
        self._patience_s = patience_s
        # A separate context, which does not affect the script's signals and nodes.
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node("vehicle_client", namespace=self._namespace or "/", context=self._context)
        self._odometry: Odometry | None = None
        self._battery: float | None = None
        self._clients: dict[str, Any] = {}
        self._commanded: set[str] = set()  # actions to which a goal was sent
        self._newest: Any = None  # goal
        self._holds = HoldServices(self._node, self._holds_it)
        subscribe(self._node, Odometry, "odom", self._on_odometry, 1)
        subscribe(self._node, BatteryState, "battery_state", self._on_battery, 1)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="vehicle", daemon=True)
        self._thread.start()
        self._is_closed = False
        atexit.register(self._close_at_exit)  # a thread of DDS would abort the process

    def __enter__(self) -> "Vehicle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self._hold_after(kind)
        finally:
            self.close()

    def _hold_after(self, kind: type[BaseException]) -> None:
        """Hold once after an exception, if the vehicle was commanded. Printed before the exception, the last line."""
        if not self._commanded:
            return
        try:
            print(f"Ended by {kind.__name__}. {self._hold(_HOLD_S)}", file=sys.stderr, flush=True)
            self._commanded.clear()
        except VehicleError as unheld:
            print(unheld, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Disconnect from the vehicle. A second call has no effect.

        Its controller holds the last goal only while another client or a visible page is there. A drone that nobody
        commands then lands after `limits.land_unattended`.
        """
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self._close_at_exit)
        self._executor.shutdown()
        self._thread.join()
        for client in self._clients.values():
            client.destroy()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _close_at_exit(self) -> None:
        """Close at the end of the script, and hold if an uncaught exception has ended it, but not a notebook."""
        is_interactive = hasattr(sys, "ps1")  # where the last exception has ended nothing
        self.__exit__(None if is_interactive else getattr(sys, "last_type", None), None, None)

    # Goals.

    def take_off(self, height: float = 0.0) -> str:
        """Take off to a height above the ground, m; 0: the vehicle's own takeoff height. Raises VehicleError."""
        return self._do("take_off", TakeOff, TakeOff.Goal(height=float(height)))

    def land(self) -> str:
        """Land here. Raises VehicleError."""
        return self._do("land", Land, Land.Goal())

    def go_to(
        self,
        x: float,
        y: float,
        z: float | None = None,
        *,
        yaw: float | None = None,
        frame: str = "",
        tolerance: float = 0.0,
        speed: float = 0.0,
    ) -> str:
        """Go to a place and stay there. Raises VehicleError.

        Args:
            x: m, in the frame.
            y: m, in the frame.
            z: m, in the frame; None: the height at which the goal begins. Ignored by vehicles that drive.
            yaw: rad to the left of the frame's x; None: any heading.
            frame: tf frame; empty: the vehicle's odometry frame.
            tolerance: m; 0: the controller's own.
            speed: m/s; 0: the controller's own.
        """
        pose = _stamped((x, y, math.nan if z is None else z), yaw, frame)
        return self._do("go_to", GoTo, GoTo.Goal(pose=pose, tolerance=float(tolerance), speed=float(speed)))

    def follow_path(
        self,
        points: Iterable[tuple[float, ...]],
        *,
        frame: str = "",
        tolerance: float = 0.0,
        speed: float = 0.0,
    ) -> str:
        """Go through places (x, y, z in m; z may be left out), and stay at the last one. Arguments as for go_to.

        Raises VehicleError.
        """
        path = Path(poses=[_stamped(point, None, frame) for point in points])
        return self._do(
            "follow_path", FollowPath, FollowPath.Goal(path=path, tolerance=float(tolerance), speed=float(speed))
        )

    def hold(self) -> str:
        """Cancel the goals, and hold the vehicle until it is resumed. Return its responses. Raises VehicleError.

        If the vehicle has no hold, as one of another make, only its goals are cancelled.
        """
        return self._hold(self._patience_s)

    def resume(self) -> str:
        """End any hold of the vehicle. Return its responses. Raises VehicleError."""
        return self._answers(self._set_held(False, self._patience_s))

    # State.

    @property
    def pose(self) -> Pose:
        """Newest pose. Raises VehicleError if there is no odometry."""
        if not self._finds(
            lambda: self._odometry is not None, lambda: bool(self._elsewhere("odom", self._odometries()))
        ):
            there = self._elsewhere("odom", self._odometries())
            raise VehicleError(f"There is no odometry on {self._namespace}/odom{there}.")
        assert self._odometry
        at, q = self._odometry.pose.pose.position, self._odometry.pose.pose.orientation
        unit = unit_quaternion(q)
        return Pose(at.x, at.y, at.z, euler_from_quaternion(unit)[2] if unit else math.nan)

    @property
    def battery(self) -> float | None:
        """Remaining charge, 0 to 1, or None if not reported."""
        return self._battery

    @property
    def commander(self) -> str:
        """Whose commands it follows now, such as "commands on /cmd_vel by /teleop"; empty if nobody's."""
        _waits(self._holds.find, self._patience_s)
        _waits(lambda: all(self._holds.reports()), _DISCOVERY_S)
        return " and ".join(filter(None, (commands_of(self._node, each) for each in self._holds.reports() if each)))

    def serves(self, action: str) -> bool:
        """Return whether the vehicle serves an action. Vehicles that drive have no take_off and no land."""
        # Actions of one controller are discovered at about the same time.
        return _waits(lambda: bool(self._actions()), self._patience_s) and _waits(
            lambda: action in self._actions(), _DISCOVERY_S
        )

    # Requests.

    @property
    def _name(self) -> str:
        return f"The vehicle {self._namespace}" if self._namespace else "The vehicle"

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()

    def _on_odometry(self, message: Odometry) -> None:
        self._odometry = message

    def _on_battery(self, message: BatteryState) -> None:
        self._battery = message.percentage if math.isfinite(message.percentage) else None

    def _served(self, ending: str) -> Iterator[str]:
        """Yield the full names of services with this suffix that have a server, and not only clients."""
        names = (name for name, _ in self._node.get_service_names_and_types() if name.endswith(ending))
        return (name for name in names if count_services(self._node, name))

    def _odometries(self) -> Iterator[str]:
        """Yield the full names of the topics with odometry."""
        topics = (name for name, kinds in self._node.get_topic_names_and_types() if _ODOMETRY in kinds)
        return (name for name in topics if self._node.count_publishers(name))

    def _finds(self, is_found: Callable[[], bool], is_elsewhere: Callable[[], bool]) -> bool:
        """Wait until something is found. Return False on timeout.

        That is early if another namespace has it for as long as discovery takes, and this one has no node.
        """
        elsewhere_since_s = math.inf

        def is_decided() -> bool:
            nonlocal elsewhere_since_s
            if is_found():
                return True
            if not is_elsewhere() or self._is_inhabited():
                elsewhere_since_s = math.inf
            else:
                elsewhere_since_s = min(elsewhere_since_s, time.monotonic())
            return time.monotonic() > elsewhere_since_s + _DISCOVERY_S

        _waits(is_decided, self._patience_s)
        return is_found()

    def _is_inhabited(self) -> bool:
        """Return whether the vehicle's namespace has a node of a vehicle or of its controller."""
        return any(
            namespace == (self._namespace or "/") and name not in _OF_NO_VEHICLE
            for name, namespace in self._node.get_node_names_and_namespaces()
        )

    def _within(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names in the vehicle's namespace, relative to it."""
        return (name.removeprefix(f"{self._namespace}/") for name in names if name.startswith(f"{self._namespace}/"))

    def _actions(self) -> list[str]:
        """Return the names of the actions served in the vehicle's namespace."""
        actions = (name.removesuffix(_SEND_GOAL) for name in self._within(self._served(_SEND_GOAL)))
        return sorted(name for name in actions if "/" not in name)

    def _elsewhere(self, name: str, names: Iterable[str]) -> str:
        """Return the namespaces in which a name was found instead, as the end of a sentence, or ""."""
        found = sorted(each for each in names if each.rpartition("/")[2] == name)[:_MOST_NAMED]
        if not found:
            return ""
        is_are = "is" if len(found) == 1 else "are"
        spaces = " or ".join(each.removesuffix(f"/{name}") or "empty" for each in found)
        return f"; there {is_are} {' and '.join(found)}: the namespace is {spaces}"

    def _holds_it(self, service: str) -> bool:
        """Return whether a hold service belongs to the vehicle and has a server."""
        return is_of(service, self._namespace) and count_services(self._node, service) > 0

    def _hold(self, patience_s: float) -> str:
        """Cancel all goals, and hold. Return the responses. Raises VehicleError if the hold is not confirmed."""
        cancels = []
        for action in self._commanded:  # cancels all goals, since a goal's ID may not be known yet
            client: Any = self._node.create_client(CancelGoal, f"{self._namespace}/{action}/_action/cancel_goal")
            cancels.append(client.call_async(CancelGoal.Request()))
        try:
            calls = self._set_held(True, patience_s)
        except VehicleError:
            if self._holds.found or not cancels or not _waits(lambda: all(each.done() for each in cancels), patience_s):
                raise
            return f"{self._name} has no hold: its goals are cancelled."
        return self._answers(calls)

    def _set_held(self, is_held: bool, patience_s: float) -> dict[str, Any]:
        """Call each hold service, and wait for the responses. Return them by service. Raises VehicleError."""
        calls: dict[str, Any] = {}
        found_s = math.inf  # when the last service was found

        def is_answered() -> bool:
            nonlocal found_s
            self._holds.find()
            if self._holds.call(is_held, calls):
                found_s = time.monotonic()
            has_settled = time.monotonic() > found_s + _SETTLED_S
            return has_settled and len(calls) == len(self._holds.found) and all(call.done() for call in calls.values())

        discovers_first = patience_s > _DISCOVERY_S
        if discovers_first:
            self._finds(self._holds.find, lambda: any(count_services(self._node, each) for each in self._holds.all()))
        if (self._holds.found or not discovers_first) and _waits(is_answered, patience_s):
            return calls
        silent = sorted(name for name in self._holds.found if name not in calls or not calls[name].done())
        if silent:
            still = "not" if is_held else "still"
            has_not = f"{', '.join(silent)} has not answered for {patience_s:g} s"
            raise VehicleError(f"{has_not}: {self._name[0].lower()}{self._name[1:]} may {still} be held.")
        if not calls:
            nodes = (node_of(name) for name in self._holds.all() if count_services(self._node, name))
            there = ", ".join(sorted(nodes)[:_MOST_NAMED]) or "none"
            isolation = f" {discovery_problem()}" if there == "none" else ""
            raise VehicleError(f"{self._name} has no node that can be held; in this domain: {there}.{isolation}")
        return calls

    def _answers(self, calls: dict[str, Any]) -> str:
        """Return the sentences of all responses. Raises VehicleError if a node refused."""
        said = {node_of(name): call.result() for name, call in calls.items()}
        text = " ".join(f"{node}: {answer.message}" for node, answer in said.items())
        if not all(answer.success for answer in said.values()):
            raise VehicleError(text)
        return text

    def _do(self, name: str, kind: Any, goal: Any) -> str:
        """Send a goal and wait for its end. Return the sentence of its result. Raises VehicleError."""
        try:
            return self._complete(name, kind, goal)
        except KeyboardInterrupt as interrupt:  # now, as a notebook or a script that catches it does not end
            self._hold_after(type(interrupt))
            raise

    def _complete(self, name: str, kind: Any, goal: Any) -> str:
        _end_like_by_ctrl_c()
        if not self._clients:  # find the hold services before the first goal, for a Ctrl-C right after it
            _waits(self._holds.find, _DISCOVERY_S)
        if name not in self._clients:
            # In the executor's thread, since rclpy adds an incomplete client to the node, which fails while it spins.
            made: Any = self._executor.create_task(ActionClient, self._node, kind, name)
            _waits(made.done, self._patience_s)
            self._clients[name] = made.result()
        client = self._clients[name]
        self._wait_for_server(name, client)
        sent: list[Any] = []

        def is_answered() -> bool:
            if time.monotonic() > began_s + _RESEND_S * len(sent):
                self._commanded.add(name)
                self._newest = goal
                sent.append(client.send_goal_async(goal))
            return sent[-1].done() if sent else False

        began_s = time.monotonic()
        if not _waits(is_answered, self._patience_s):
            raise VehicleError(f"{self._namespace}/{name} has not answered for {self._patience_s:g} s.")
        ended = sent[-1].result().get_result_async()
        while not _waits(ended.done, self._patience_s):
            if not client.server_is_ready():
                raise VehicleError(f"The node that served {self._namespace}/{name} is gone.")
        return self._outcome(ended.result(), goal)

    def _outcome(self, ended: Any, goal: Any) -> str:
        """Return the sentence of a result. Raises VehicleError. After another program's goal, there is no hold."""
        if ended.status == GoalStatus.STATUS_SUCCEEDED:
            return str(ended.result.message)
        if goal is self._newest and ended.result.error_code == ended.result.REPLACED:
            self._commanded.clear()
        raise VehicleError(ended.result.message)

    def _wait_for_server(self, name: str, client: Any) -> None:
        """Wait for an action server. Raises VehicleError, early if the vehicle serves only other actions."""
        others_since_s = math.inf

        def is_decided() -> bool:
            nonlocal others_since_s
            if self._actions():
                others_since_s = min(others_since_s, time.monotonic())
            return client.server_is_ready() or time.monotonic() > others_since_s + _DISCOVERY_S

        def goals() -> Iterator[str]:
            return (each.removesuffix(_SEND_GOAL) for each in self._served(_SEND_GOAL))

        self._finds(is_decided, lambda: bool(self._elsewhere(name, goals())))
        if client.server_is_ready():
            return
        if actions := [each for each in self._actions() if each != name]:
            raise VehicleError(f"{self._name} has no {name}: it has {', '.join(actions)}.")
        advice = self._elsewhere(name, goals()) or ": start a controller (goals:=true in launch files)"
        isolation = f" {discovery_problem()}" if len(self._node.get_node_names()) <= 1 else ""
        raise VehicleError(f"No node serves {self._namespace}/{name}{advice}.{isolation}")


def _end_like_by_ctrl_c() -> None:
    """Let a closed terminal, an IDE's stop and Ctrl-Z end a script like Ctrl-C, unless it handles them otherwise."""
    if threading.current_thread() is threading.main_thread() and not hasattr(sys, "ps1"):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)


def _waits(condition: Callable[[], bool], patience_s: float) -> bool:
    """Poll a condition, which lets Ctrl-C interrupt. Return False on timeout."""
    until_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(_POLL_S)
    return True


def _stamped(place: tuple[float, ...], yaw: float | None, frame: str) -> PoseStamped:
    """Return a pose; without z at the height at which its goal begins. Raises VehicleError for degrees."""
    if yaw is not None and not abs(yaw) <= math.tau:
        raise VehicleError(f"yaw is {yaw:g}, and must be in rad, from {-math.tau:.2f} to {math.tau:.2f}.")
    pose = PoseStamped()
    pose.header.frame_id = frame
    x, y, z = place if len(place) > 2 else (*place, math.nan)
    pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = map(float, (x, y, z))
    pose.pose.orientation.w = 0.0  # zeros: any heading
    if yaw is not None:
        set_quaternion(pose.pose.orientation, quaternion_from_euler(0.0, 0.0, float(yaw)))
    return pose
