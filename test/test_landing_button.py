# SPDX-License-Identifier: Apache-2.0
"""A low battery lands a drone by its button, as a process."""

from ports import free_port
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


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
