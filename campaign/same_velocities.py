# SPDX-License-Identifier: Apache-2.0
"""One velocity topic for five vehicles of five protocols, by the clock: they do the same, and stop at a zero.

They also stop without commands. The emulators' own trajectories are evaluated, in the vehicles' own time.
"""

import contextlib
import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from geometry_msgs.msg import Twist
from ports import free_port
from processes import Process, executable, when_listening
from ros_session import RosSession, repeating, wait_until
from step import Verdict
from trajectories import Place, Row, Trajectory, mean_motion
from twists import twist

#: Times of each vehicle, s: until a velocity is followed, measurement, until a vehicle stands.
SETTLING_S, MEASURED_S, STOPPING_S, STANDING_S = 2.0, 2.0, 3.0, 5.0
#: Forward, m/s, and to the left, rad/s: within the range of all vehicles.
LEGS = ((0.4, 0.0), (0.0, 0.5), (0.4, 0.5), (-0.3, -0.4))
PERIOD_S = 0.05
STANDS_WITHIN_M = 0.3
#: Vehicles whose neutral command levels them, and lets them coast.
COASTS = "telemetry"


def place_in_testbed(row: Row) -> Place:
    """Return x, y and yaw of a row."""
    return float(row["x"]), -float(row["z"]), math.radians(90 - float(row["heading"]))


def place_of_robot(row: Row) -> Place:
    """Return x, y and yaw of a row."""
    return float(row["x"]), float(row["y"]), float(row["heading"])


def place_in_simulator(row: Row) -> Place:
    """Return x, y and yaw of a row. Its world is north-east-down."""
    w, x, y, z = (float(row[f"q{axis}"]) for axis in "wxyz")
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return float(row["y"]), float(row["x"]), math.pi / 2 - yaw


def place_of_drone(row: Row) -> Place:
    """Return x, y and yaw of a row of the AR.Drone or the landing drone."""
    return float(row["x"]), float(row["y"]), math.radians(float(row["yaw"]))


PLACES: Mapping[str, Callable[[Row], Place]] = {
    "testbed": place_in_testbed,
    "robot": place_of_robot,
    "simulator": place_in_simulator,
    "dronegui": place_of_drone,
    "telemetry": place_of_drone,
}
EMULATED: Mapping[str, tuple[object, ...]] = {
    "testbed": ("--layout", "pose", "--wind", "1 0 0", "--realtime", "--width", 32, "--height", 32),
    "robot": ("--discovery-port", 0, "--no-discovery"),
    "simulator": ("--running",),
    "dronegui": ("--navdata-source-port", 0, "--bootstrapped"),
    "telemetry": ("--no-images", "--gusts", 0, "--height", 2),
}


class Vehicles:
    """All five, each with its bridge, on one cmd_vel."""

    def __init__(self, stack: contextlib.ExitStack, session: Any, folder: Path) -> None:
        self._stack = stack
        self.flown: dict[str, Trajectory] = {}
        for name in PLACES:
            path = folder / f"{name}.csv"
            options = (*EMULATED[name], "--trajectory", path)
            if name == "telemetry":  # to which the vehicle sends
                bridge = self._start_bridge(name, transport="udp", port=0)
                port = bridge.wait_for_line(r"Waiting for telemetry on 127\.0\.0\.1:(\d+)")[1]
                self._start_emulator(name, "--port", port, *options)
            elif name == "dronegui":
                navdata_port = free_port()
                gui = self._start_emulator(name, "--port", 0, "--navdata-port", navdata_port, "--no-video", *options)
                port = gui.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]
                self._start_bridge(name, port=port, navdata_port=navdata_port, video_port=0)
            else:
                emulator = when_listening(self._start_emulator(name, "--port", 0, *options))
                # The simulation is already running, so the bridge can't learn the vehicle's axes.
                axes = {"body_to_model": "[1.0, 0.0, 0.0, 0.0]"} if name == "simulator" else {}
                self._start_bridge(name, port=emulator.port, **axes).wait_for_line("Connected to")
            wait_until(path.exists, f"the trajectory of {name}")
            self.flown[name] = Trajectory(path, PLACES[name])
            stack.callback(self.flown[name].close)
        taken_off = session.trigger("/dronegui/dronegui_bridge/takeoff")
        assert taken_off.success, taken_off.message
        self.let_pass(8.0)

    def let_pass(self, seconds: float) -> dict[str, float]:
        """Wait for this much of each vehicle's own time; return the start times."""
        began_s = {name: flown.read() for name, flown in self.flown.items()}
        is_over = lambda: all(flown.read() >= began_s[name] + seconds for name, flown in self.flown.items())  # noqa: E731
        wait_until(is_over, f"{seconds:g} s of all vehicles' time", period_s=PERIOD_S)
        return began_s

    def way(self, name: str, began_s: float, ended_s: float) -> float:
        """Return a vehicle's distance from its position at the start, m."""
        places = [state[1:3] for state in self.flown[name].between(began_s, ended_s)]
        return max(math.dist(places[0], each) for each in places)

    def _start_emulator(self, name: str, *options: object) -> Any:
        return self._start(sys.executable, "-m", f"drone_bridge.{name}.emulator", *options)

    def _start_bridge(self, name: str, **parameters: object) -> Any:
        given = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        names = ("-r", f"__ns:=/{name}", "-r", f"/{name}/cmd_vel:=/cmd_vel")
        return self._start(executable(f"{name}_bridge"), "--ros-args", *names, *given)

    def _start(self, *command: object) -> Any:
        process = Process(*command)
        self._stack.callback(process.end)
        return process


class Stick:
    """Continuous publisher of a velocity, unless it is released."""

    def __init__(self, session: Any) -> None:
        self._publisher = session.publisher(Twist, "/cmd_vel", subscribers=len(PLACES))
        self.wanted: Any = twist()

    def publish(self, _: int) -> None:
        """Publish the wanted velocity; nothing for None."""
        if self.wanted is not None:
            self._publisher.publish(self.wanted)


def fly(vehicles: Vehicles, stick: Stick, verdict: Verdict) -> tuple[float, float, float]:
    """Fly the legs, a zero and a silence; return the largest errors, m/s and rad/s, and stopping distance, m."""
    errors, ways = {name: [0.0, 0.0] for name in PLACES}, dict[str, float]()
    for leg in LEGS:
        stick.wanted = twist(forward=leg[0], left_turn=leg[1])
        for name, began_s in vehicles.let_pass(SETTLING_S + MEASURED_S).items():
            flown = mean_motion(vehicles.flown[name].between(began_s + SETTLING_S, began_s + SETTLING_S + MEASURED_S))
            errors[name] = [max(e, abs(f - w)) for e, f, w in zip(errors[name], flown, leg, strict=True)]
    for said, silence in (("a zero", twist()), ("silence", None)):
        stick.wanted = twist(forward=0.4)
        vehicles.let_pass(SETTLING_S)
        stick.wanted = silence
        for name, began_s in vehicles.let_pass(STOPPING_S + STANDING_S).items():
            stands_s = began_s + STOPPING_S
            ways[name] = max(ways.get(name, 0.0), vehicles.way(name, began_s, stands_s))
            drift = vehicles.way(name, stands_s, stands_s + STANDING_S)
            print(f"{name}: stands {ways[name]:.2f} m after {said}, and drifts {drift:.2f} m in {STANDING_S:g} s")
            if not (name == COASTS and silence is None):
                verdict.stopped(drift < STANDS_WITHIN_M, f"{name} went {drift:.2f} m after {said}")
    for name, (speed, turn) in errors.items():
        print(f"{name}: follows velocities within {speed:.3f} m/s and {turn:.3f} rad/s", flush=True)
    return max(e[0] for e in errors.values()), max(e[1] for e in errors.values()), max(ways.values())


def main(short: bool) -> int:
    """Fly all five simultaneously, and print how well they follow and stop."""
    verdict, worst = Verdict(), (0.0, 0.0, 0.0)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        session = RosSession()
        stack.callback(session.close)
        vehicles = Vehicles(stack, session, Path(folder))
        stick = Stick(session)
        with repeating(stick.publish, PERIOD_S):
            for _ in range(1 if short else 5):
                found = fly(vehicles, stick, verdict)
                worst = tuple(map(max, worst, found))  # type: ignore[assignment]
    speed, turn, way = worst
    verdict.figure(f"all five within {speed:.2f} m/s and {turn:.2f} rad/s of the command, stop within {way:.2f} m")
    return verdict.status
