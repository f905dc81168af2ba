# SPDX-License-Identifier: Apache-2.0
"""A drone that is commanded far and fast, by the clock: it stops at its fence, and flies back."""

import contextlib
import math
import tempfile
from pathlib import Path

from geometry_msgs.msg import Twist
from processes import Process, when_listening
from ros_session import RosSession, wait_until
from sensor_msgs.msg import Imu
from step import Verdict
from testbed_trajectory import rows_of
from twists import twist

FENCE_M, OUTSIDE_M = 3.0, 1.0
MAX_SPEED = 2.0  # m/s, of all drones by default
OUT_S, BACK_S = 8.0, 2.0  # simulated


def main(short: bool) -> int:
    """Fly out and back, and print the maximum distance and speed."""
    verdict, farthest, fastest, back = Verdict(), 0.0, 0.0, math.inf
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        trajectory, session = Path(folder, "flight.csv"), RosSession()
        stack.callback(session.close)
        options = ("--layout", "pose", "--realtime", "--width", 32, "--height", 32, "--trajectory", trajectory)
        testbed = stack.enter_context(Process.module("drone_bridge.testbed.emulator", "--port", 0, *options))
        parameters = {"stamp_source": "wire", "limits.fence_radius": FENCE_M}
        stack.enter_context(Process.node("testbed_bridge", port=when_listening(testbed).port, **parameters))
        attitudes, publisher = session.subscribe(Imu, "imu/data"), session.publisher(Twist, "cmd_vel")

        def fly(forward: float, for_s: float) -> float:
            """Command this speed, and return the simulation time at the end."""
            began_s = now_s = -math.inf
            while not math.isfinite(began_s) or now_s < began_s + for_s:
                publisher.publish(twist(forward=forward))
                stamp = attitudes.wait().header.stamp
                now_s = stamp.sec + stamp.nanosec / 1e9
                began_s = began_s if math.isfinite(began_s) else now_s
            return float(now_s)

        for _ in range(1 if short else 10):
            out_s = fly(10.0, OUT_S)
            ended_s = fly(-1.0, BACK_S)
            wait_until(lambda ended_s=ended_s: rows_of(trajectory)[-1]["time"] > ended_s, "the trajectory")
            rows = rows_of(trajectory)
            ways = [math.dist((row["x"], row["z"]), (rows[0]["x"], rows[0]["z"])) for row in rows]
            at_the_fence = max(way for way, row in zip(ways, rows, strict=True) if row["time"] <= out_s)
            farthest, back = max(farthest, *ways), min(back, at_the_fence - ways[-1])
            fastest = max(math.hypot(row["vx"], row["vy"], row["vz"]) for row in rows)
    verdict.stopped(farthest <= FENCE_M + OUTSIDE_M, f"it flew {farthest:.2f} m far (fence at {FENCE_M:g} m)")
    verdict.stopped(fastest < 1.2 * MAX_SPEED, f"it flew at {fastest:.2f} m/s (limit {MAX_SPEED:g} m/s)")
    verdict.figure(f"a fence of {FENCE_M:g} m: at most {farthest:.2f} m out at {fastest:.2f} m/s, {back:.2f} m back")
    return verdict.status
