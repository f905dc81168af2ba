# SPDX-License-Identifier: Apache-2.0
"""Limits as bridges have them: a speed, a fence, odometry that is lost, a battery that is low."""

import math
import sys

from geometry_msgs.msg import PolygonStamped, Twist
from ports import free_port
from processes import Process, executable, when_listening
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating, wait_until
from sensor_msgs.msg import Imu
from std_msgs.msg import Bool
from std_srvs.srv import SetBool
from telemetry_peer import Clock, drone, start_with_peer
from testbed_trajectory import rows_of
from twists import twist

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FENCE_M, OUTSIDE_M = 3.0, 1.0
MAX_SPEED = 2.0
STANDING = {"x": 0.0, "y": 0.0, "z": 0.0}


def horizontal(row):
    return row["x"], row["z"]


def test_a_drone_that_is_told_to_fly_far_and_fast_stops_at_its_fence_and_flies_back(ros, start_child, tmp_path):
    trajectory = tmp_path / "flight.csv"
    options = ("--layout", "pose", "--realtime", "--width", 32, "--height", 32, "--trajectory", trajectory)
    testbed = start_child(sys.executable, "-m", "drone_bridge.testbed.emulator", "--port", 0, *options)
    port = when_listening(testbed).port
    parameters = ("-p", f"port:={port}", "-p", "stamp_source:=wire", "-p", f"limits.fence_radius:={FENCE_M}")
    start_child(executable("testbed_bridge"), "--ros-args", *parameters)
    attitudes = ros.subscribe(Imu, "imu/data")
    publisher = ros.publisher(Twist, "cmd_vel")

    def fly(forward, for_s):
        began_s = now_s = None
        while began_s is None or now_s < began_s + for_s:
            publisher.publish(twist(forward=forward))
            stamp = attitudes.wait().header.stamp
            now_s = stamp.sec + stamp.nanosec / 1e9
            began_s = now_s if began_s is None else began_s
        return now_s

    fences = ros.subscribe(PolygonStamped, "fence", LATCHED)
    fly(10.0, 8.0)
    fence = fences.wait()
    assert fence.header.frame_id == "odom"
    assert all(abs(math.hypot(corner.x, corner.y) - FENCE_M) < 1e-3 for corner in fence.polygon.points)
    ended_s = fly(-1.0, 2.0)
    wait_until(lambda: rows_of(trajectory)[-1]["time"] > ended_s, "the trajectory")
    rows = rows_of(trajectory)
    ways = [math.dist(horizontal(row), horizontal(rows[0])) for row in rows]
    assert FENCE_M - 1.0 < max(ways) <= FENCE_M + OUTSIDE_M
    assert max(math.hypot(row["vx"], row["vy"], row["vz"]) for row in rows) < 1.2 * MAX_SPEED
    assert ways[-1] < max(ways) - 0.5  # it has flown back


def test_a_drone_whose_telemetry_is_lost_stands_and_then_lands_unless_it_is_held(ros):
    limits = {"limits.fence_radius": FENCE_M, "limits.odometry_timeout": 0.5, "limits.land_after": 1.0}
    process, peer = start_with_peer(stamp_source="wire", telemetry_timeout=60.0, command_timeout=60.0, **limits)
    with process:
        clock, publisher = Clock(), ros.publisher(Twist, "cmd_vel")
        with repeating(lambda _: peer.send(drone(timestamp=clock.next(), velocity=STANDING)), 0.05):
            process.wait_for_line("Talking to")  # a command for no vehicle would be dropped
            publisher.publish(twist(forward=0.5))
            peer.wait_for_next(lambda command: command["pitch"] != 0.0)
        peer.wait_for_next(lambda command: command["pitch"] == command["thrust"] == 0.0)
        peer.wait_for_next(lambda command: command["pitch"] == 0.0 and command["thrust"] < 0.0)
        process.wait_for_line("it lands by itself: hold it, or take the helm")
        assert ros.call(SetBool, "telemetry_bridge/hold", SetBool.Request(data=True)).success
        peer.wait_for_next(lambda command: command["thrust"] == 0.0)
        assert ros.call(SetBool, "telemetry_bridge/hold", SetBool.Request(data=False)).success
        peer.wait_for_next(lambda command: command["thrust"] < 0.0)
    peer.close()


def test_a_drone_with_a_low_battery_lands_by_its_button_if_told_so(ros):
    port = free_port()
    ports = ("--port", "0", "--navdata-source-port", "0", "--navdata-port", port)
    flying = ros.subscribe(Bool, "flying", LATCHED)
    limits = {"limits.low_battery": 1.0, "limits.land_on_low_battery": True}  # it is full only on the ground
    with Process.module("drone_bridge.dronegui.emulator", *ports, "--bootstrapped") as gui:
        address = {"port": int(gui.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]), "navdata_port": port}
        with Process.node("dronegui_bridge", **address, **limits) as process:
            flying.wait(lambda message: not message.data)
            assert ros.trigger("dronegui_bridge/takeoff").success
            flying.wait(lambda message: message.data)
            process.wait_for_line("the battery has less than 100% left")
            process.wait_for_line("take_off was pressed and released, and the drone lands")
            flying.wait(lambda message: not message.data)
