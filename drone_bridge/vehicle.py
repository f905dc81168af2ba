# SPDX-License-Identifier: Apache-2.0
"""A vehicle for scripts and notebooks: each call blocks until it is done, or raises what went wrong as a sentence.

    with drone_bridge.Vehicle("/drone") as drone:
        drone.take_off(1.5)
        drone.go_to(2.0, 0.0, 1.5, yaw=1.57)
        print(drone.pose, drone.battery)
        drone.land()

Ctrl-C, or an exception in the block, leaves the vehicle in hold. See docs/controllers.md.
"""

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple

import rclpy
from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry, Path
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import BatteryState
from std_srvs.srv import SetBool

from drone_bridge.action import FollowPath, GoTo, Land, TakeOff
from drone_bridge.motion.quaternions import euler_from_quaternion, quaternion_from_euler, unit_quaternion
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.transforms import set_quaternion

#: For whatever has to be found or answered, unless a vehicle was made with another patience.
PATIENCE_S = 10.0
#: After which a goal that nobody has answered is sent again: the first may have come before its sender was known.
_RESEND_S = 2.0
_DISCOVERY_S = 1.0  # between two actions of one controller
_HOLD_S = 1.0  # to be answered, when a script ends with an exception
_POLL_S = 0.05  # in which Ctrl-C is noticed


class VehicleError(RuntimeError):
    """A vehicle did not do what was requested; the text says why."""


class Pose(NamedTuple):
    """Where a vehicle is, in the frame of its odometry: m, and rad to the left of x."""

    x: float
    y: float
    z: float
    yaw: float


class Vehicle:
    """One vehicle, whose controller takes goals."""

    def __init__(self, namespace: str = "", *, patience_s: float = PATIENCE_S) -> None:
        """Find nothing yet: the first call reports what does not answer."""
        self._namespace = f"/{namespace.strip('/')}".rstrip("/")
        self._patience_s = patience_s
        # A context of its own, so that neither signals nor nodes of the script are touched.
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node("vehicle_client", namespace=self._namespace or "/", context=self._context)
        self._odometry: Odometry | None = None
        self._battery: float | None = None
        self._clients: dict[str, Any] = {}
        self._holds: dict[str, Any] = {}  # clients, by service
        subscribe(self._node, Odometry, "odom", self._on_odometry, 1)
        subscribe(self._node, BatteryState, "battery_state", self._on_battery, 1)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="vehicle", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Vehicle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self.hold()
        except VehicleError as unheld:  # before the exception of the block, whose sentence is the last line
            print(unheld, file=sys.stderr, flush=True)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the vehicle, which holds its last goal."""
        self._executor.shutdown()
        self._thread.join()
        for client in self._clients.values():
            client.destroy()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    # What it does.

    def take_off(self, height: float = 0.0) -> str:
        """Rise to a height above the ground, m; 0: as high as the vehicle rises by itself. Raises VehicleError."""
        return self._do("take_off", TakeOff, TakeOff.Goal(height=float(height)))

    def land(self) -> str:
        """Land here. Raises VehicleError."""
        return self._do("land", Land, Land.Goal())

    def go_to(
        self,
        x: float,
        y: float,
        z: float = 0.0,
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
            z: m, in the frame; for what drives it means nothing.
            yaw: rad to the left of the frame's x; None: any heading.
            frame: of tf; empty: that of the vehicle's odometry.
            tolerance: m; 0: the controller's own.
            speed: m/s; 0: the controller's own.
        """
        pose = _stamped((x, y, z), yaw, frame)
        return self._do("go_to", GoTo, GoTo.Goal(pose=pose, tolerance=float(tolerance), speed=float(speed)))

    def follow_path(
        self,
        points: Iterable[tuple[float, float, float]],
        *,
        frame: str = "",
        tolerance: float = 0.0,
        speed: float = 0.0,
    ) -> str:
        """Go through places (x, y, z in m), and stay at the last one; see go_to. Raises VehicleError."""
        path = Path(poses=[_stamped(point, None, frame) for point in points])
        return self._do(
            "follow_path", FollowPath, FollowPath.Goal(path=path, tolerance=float(tolerance), speed=float(speed))
        )

    def hold(self) -> None:
        """Give up the goal, and have the vehicle held until somebody resumes. Raises VehicleError if it may not be."""
        calls = []
        for action in self._clients:  # without the goal's number, which may not be known yet: all are meant
            calls.append(self._call(CancelGoal, f"{action}/_action/cancel_goal", CancelGoal.Request()))
        _waits(self._finds_hold, _HOLD_S)
        calls += [client.call_async(SetBool.Request(data=True)) for client in self._holds.values()]
        if not _waits(lambda: all(call.done() for call in calls), _HOLD_S):
            raise VehicleError(f"{self._name} has not answered, and may not be held.")

    def resume(self) -> None:
        """End the hold. Raises VehicleError."""
        self._finds_hold()
        for name, client in self._holds.items():
            call = client.call_async(SetBool.Request(data=False))
            if not _waits(call.done, self._patience_s):
                raise VehicleError(f"{name} has not answered for {self._patience_s:g} s.")

    # What it says.

    @property
    def pose(self) -> Pose:
        """The newest pose. Raises VehicleError while there is none."""
        if not _waits(lambda: self._odometry is not None, self._patience_s):
            raise VehicleError(f"There is no odometry on {self._namespace}/odom.")
        assert self._odometry
        at, q = self._odometry.pose.pose.position, self._odometry.pose.pose.orientation
        unit = unit_quaternion(q)
        return Pose(at.x, at.y, at.z, euler_from_quaternion(unit)[2] if unit else math.nan)

    @property
    def battery(self) -> float | None:
        """What is left of its charge, from 0 to 1, as far as it has reported that."""
        return self._battery

    def serves(self, action: str) -> bool:
        """Return whether it serves an action: what drives has no take_off and no land."""

        def is_there(name: str) -> bool:
            return bool(self._services(f"{name}/_action/send_goal"))

        # go_to is always served; what is served beside it is found at about the same time.
        return _waits(lambda: is_there("go_to"), self._patience_s) and _waits(lambda: is_there(action), _DISCOVERY_S)

    # Requests to it.

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

    def _services(self, name: str) -> list[str]:
        """Return the services of that name in the vehicle's namespace, or of a node there."""
        found = (each for each, _ in self._node.get_service_names_and_types())
        ours = (each.removeprefix(f"{self._namespace}/") for each in found if each.startswith(f"{self._namespace}/"))
        wanted = [each for each in ours if each == name or (each.endswith(f"/{name}") and each.count("/") == 1)]
        return [f"{self._namespace}/{each}" for each in wanted]

    def _finds_hold(self) -> bool:
        """Have a client for each service that holds it; return whether there are any, and all can be called."""
        for name in self._services("hold"):
            if name not in self._holds:
                self._holds[name] = self._node.create_client(SetBool, name)
        return bool(self._holds) and all(client.service_is_ready() for client in self._holds.values())

    def _call(self, kind: Any, name: str, request: Any) -> Any:
        client: Any = self._node.create_client(kind, name)
        return client.call_async(request)

    def _do(self, name: str, kind: Any, goal: Any) -> str:
        """Send a goal and wait until it has ended; return how, in a sentence. Raises VehicleError."""
        if not self._clients:  # what holds it is found before anything moves it: Ctrl-C may come right then
            _waits(self._finds_hold, _DISCOVERY_S)
        if name not in self._clients:
            # In the executor's thread: rclpy adds it to a node before it is whole, which fails while that spins.
            made: Any = self._executor.create_task(ActionClient, self._node, kind, name)
            _waits(made.done, self._patience_s)
            self._clients[name] = made.result()
        client = self._clients[name]
        if not _waits(client.server_is_ready, self._patience_s):
            raise VehicleError(
                f"No node serves {self._namespace}/{name}: start a controller (goals:=true in launch files)."
            )
        sent: list[Any] = []

        def is_answered() -> bool:
            if time.monotonic() > began_s + _RESEND_S * len(sent):
                sent.append(client.send_goal_async(goal))
            return sent[-1].done() if sent else False

        began_s = time.monotonic()
        if not _waits(is_answered, self._patience_s):
            raise VehicleError(f"{self._namespace}/{name} has not answered for {self._patience_s:g} s.")
        ended = sent[-1].result().get_result_async()
        while not _waits(ended.done, self._patience_s):
            if not client.server_is_ready():
                raise VehicleError(f"The node that served {self._namespace}/{name} is gone.")
        if ended.result().status != GoalStatus.STATUS_SUCCEEDED:
            raise VehicleError(ended.result().result.message)
        message: str = ended.result().result.message
        return message


def _waits(condition: Callable[[], bool], patience_s: float) -> bool:
    """Wait for a condition, so that Ctrl-C is noticed; return whether it has come true."""
    until_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(_POLL_S)
    return True


def _stamped(place: tuple[float, float, float], yaw: float | None, frame: str) -> PoseStamped:
    pose = PoseStamped()
    pose.header.frame_id = frame
    pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = map(float, place)
    pose.pose.orientation.w = 0.0  # zeros: any heading
    if yaw is not None:
        set_quaternion(pose.pose.orientation, quaternion_from_euler(0.0, 0.0, float(yaw)))
    return pose
