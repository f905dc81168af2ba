# SPDX-License-Identifier: Apache-2.0
"""Limits as bridges have them: odometry that is lost, a battery that is low."""

import math

import pytest
from geometry_msgs.msg import PolygonStamped, Twist
from ports import free_port
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating, wait_until
from std_msgs.msg import Bool
from std_srvs.srv import SetBool
from telemetry_documents import Clock, drone
from telemetry_peer import start_with_peer
from twists import twist

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FENCE_M = 3.0
STANDING = {"x": 0.0, "y": 0.0, "z": 0.0}


def test_a_drone_whose_telemetry_is_lost_stands_and_then_lands_unless_it_is_held(ros):
    limits = {"limits.fence_radius": FENCE_M, "limits.odometry_timeout": 0.5, "limits.land_after": 1.0}
    process, peer = start_with_peer(stamp_source="wire", telemetry_timeout=60.0, command_timeout=60.0, **limits)
    with process:
        clock, publisher = Clock(), ros.publisher(Twist, "cmd_vel")
        fences = ros.subscribe(PolygonStamped, "fence", LATCHED)
        with repeating(lambda _: peer.send(drone(timestamp=clock.next(), velocity=STANDING)), 0.05):
            process.wait_for_line("Talking to")  # a command for no vehicle would be dropped
            wait_until(
                lambda: publisher.publish(twist(forward=0.5)) or any(found["pitch"] for found in peer.commands),
                "a command that is followed",
                period_s=0.05,
            )
            fence = fences.wait()
        assert fence.header.frame_id == "odom"
        assert all(math.hypot(corner.x, corner.y) == pytest.approx(FENCE_M) for corner in fence.polygon.points)
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
