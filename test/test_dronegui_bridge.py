# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge as a process, between real DDS and a real UDP socket."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from dronegui_peer import HOVER, DroneGuiPeer
from geometry_msgs.msg import Twist, TwistStamped
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import TIMEOUT_S, RosSession, repeating, wait_until
from std_msgs.msg import Bool, Empty
from std_srvs.srv import SetBool, Trigger
from twists import twist

from drone_bridge.msg import CommandAxes, DroneGuiState
from drone_bridge.ros.time import time_from_seconds

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NOT_FRESH_S = 0.5  # command_timeout


DEFAULTS = {
    "command_timeout": NOT_FRESH_S,
    "rate": 20.0,
    "press_time": 0.5,
}


@pytest.fixture(scope="module")
def running():
    """One bridge, which most tests share."""
    session, peer = RosSession(), DroneGuiPeer()
    with bridge(peer, frame_prefix="d1/") as process:
        peer.wait()
        yield session, peer, process
    peer.close()
    session.close()


@pytest.fixture
def ros(running):
    return running[0]


@pytest.fixture
def process(running):
    return running[2]


@pytest.fixture
def peer(running):
    """Who the bridge talks to, when nothing is left of what the test before did."""
    session, peer, _ = running
    assert all(result.successful for result in session.set_parameters("dronegui_bridge", **DEFAULTS))
    switch(session, "hover", False)
    switch(session, "assume_flying", False)
    peer.wait_for_next(lambda packet: packet.is_hover)
    peer.forget()
    return peer


def bridge(peer, **parameters):
    """Start a bridge for a GUI that sends no navdata; see test_dronegui_bridge_navdata.py for the others."""
    return Process.node("dronegui_bridge", port=peer.port, receive_navdata=False, bootstrap=False, **parameters)


def command(publisher, peer, message, **axes):
    """Publish until the wire says what was meant; return the packet."""
    start = len(peer.packets)

    def said():
        publisher.publish(message)
        return any(packet.is_following(**axes) for packet in peer.packets[start:])

    wait_until(said, f"a packet with {axes}", period_s=0.03)
    return next(packet for packet in peer.packets[start:] if packet.is_following(**axes))


def refuse(process, publisher, message, line):
    """Publish until the log says that a command was refused."""
    wait_until(lambda: publisher.publish(message) or process.count_lines(line), line, period_s=0.1)


def changing(publisher):
    """Publish changing cmd_axes for as long as the `with` block lasts."""
    return repeating(lambda number: publisher.publish(CommandAxes(pitch=number % 50 / 50)))


def press(ros, name):
    return ros.trigger(f"dronegui_bridge/{name}")


def switch(ros, name, on):
    return ros.call(SetBool, f"dronegui_bridge/{name}", SetBool.Request(data=on))


def runs(packets, button):
    """Return the presses of a button, each as the list of its packets."""
    found, before = [], None
    for packet in packets:
        if packet.presses(button):
            if before is None or not before.presses(button):
                found.append([])
            found[-1].append(packet)
        before = packet
    return found


def client_of(ros, name):
    client = ros.node.create_client(Trigger, f"dronegui_bridge/{name}")
    assert client.wait_for_service(TIMEOUT_S)
    return client


def is_ours(report):
    return report.status[0].name == "dronegui_bridge: link"


# Commands.


def test_without_feedback_a_velocity_tilts_gently_and_zero_presses_hover(ros, peer, process):
    ros.set_parameters("dronegui_bridge", command_timeout=60.0)
    publisher = ros.publisher(Twist, "cmd_vel")
    start = len(peer.packets)

    def is_flown():
        publisher.publish(twist(0.3, 0.2, 0.3, -0.4))
        return any(not packet.is_hover for packet in peer.packets[start:])

    wait_until(is_flown, "the velocity", period_s=0.03)
    state = peer.wait_for_next(lambda packet: not packet.is_hover).state
    assert -0.2 <= state["pitch"] < 0 > state["roll"] >= -0.2
    assert state["gas"] > 0 < state["yaw"]
    process.wait_for_line("velocities are estimated from the tilt that is commanded")
    process.wait_for_line("Shares of full tilt, as in 0.2, go to cmd_axes")
    start = len(peer.packets)
    wait_until(
        lambda: publisher.publish(twist()) or any(packet.is_hover for packet in peer.packets[start:]),
        "hover",
        period_s=0.03,
    )
    assert process.count_lines("velocities are estimated") == 1


def test_cmd_axes_are_the_shares_of_the_wire_and_no_stale_ones(ros, peer, process):
    publisher = ros.publisher(CommandAxes, "cmd_axes")
    axes = CommandAxes(thrust=0.3, pitch=0.1, roll=-0.2, yaw=0.4)

    def is_said():
        ros.publish_fresh(publisher, axes)
        return any(packet.is_following(roll=-0.2, pitch=-0.1, yaw=-0.4, gas=0.3) for packet in peer.packets)

    wait_until(is_said, "the shares on the wire", period_s=0.03)
    peer.wait_for_next(lambda packet: packet.is_hover)
    axes.header.stamp = time_from_seconds(1.0)
    refuse(process, publisher, axes, r"cmd_axes was refused: it is .* s old")


def test_packets_are_published_as_they_were_sent(ros, peer):
    states = ros.subscribe(DroneGuiState, "dronegui/state")
    with changing(ros.publisher(CommandAxes, "cmd_axes")):
        state = states.wait(lambda state: state.pitch < 0)
        packet = peer.wait(lambda packet: packet.seq == state.seq)
    assert {name: getattr(state, name) for name in HOVER} == packet.state
    assert state.header.frame_id == "d1/base_link"


def test_invalid_commands_are_refused_and_counted(ros, peer, process):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    before = int(values_of(reports.wait(is_ours))["refused commands"])
    publisher = ros.publisher(Twist, "cmd_vel")
    stamped = ros.publisher(TwistStamped, "cmd_vel_stamped")
    refuse(process, publisher, twist(forward=math.nan), r"cmd_vel was refused: linear\.x is nan")
    refuse(process, publisher, twist(left_turn=math.inf), r"cmd_vel was refused: angular\.z is inf")
    old = TwistStamped(twist=twist(forward=1.0))
    old.header.stamp = time_from_seconds(1.0)
    refuse(process, stamped, old, r"cmd_vel_stamped was refused: it is .* s old")
    report = reports.wait(lambda report: is_ours(report) and int(values_of(report)["refused commands"]) >= before + 3)
    assert report.status[0].level == DiagnosticStatus.WARN
    healthy = reports.wait(
        lambda report: (
            is_ours(report)
            and report.status[0].level == DiagnosticStatus.OK
            and float(values_of(report)["packets per second"]) == pytest.approx(20, abs=4)
        )
    )
    assert values_of(healthy)["state"] == "sending"
    assert all(packet.is_hover for packet in peer.packets)
    fresh = TwistStamped(twist=twist(forward=1.0))

    def is_followed():
        ros.publish_fresh(stamped, fresh)
        return any(packet.state["pitch"] < 0 for packet in peer.packets)

    wait_until(is_followed, "a fresh command followed", period_s=0.03)


def test_hover_can_be_held_against_commands(ros, peer):
    publisher = ros.publisher(CommandAxes, "cmd_axes")
    command(publisher, peer, CommandAxes(pitch=1.0), pitch=-1)
    with changing(publisher):
        assert "whatever is commanded" in switch(ros, "hover", True).message
        start = peer.wait_for_next().seq + 1
        peer.wait(lambda packet: packet.seq == start + 5)
        assert all(packet.is_hover for packet in peer.packets if packet.seq >= start)
        assert "follows commands" in switch(ros, "hover", False).message
        peer.wait_for_next(lambda packet: not packet.is_hover)
    ros.set_parameters("dronegui_bridge", command_timeout=60.0)
    command(publisher, peer, CommandAxes())
    switch(ros, "hover", True)
    switch(ros, "hover", False)  # what was commanded before that is over, so the drone stays where it is
    start = peer.wait_for_next().seq + 1
    peer.wait(lambda packet: packet.seq == start + 5)
    assert all(packet.is_hover for packet in peer.packets if packet.seq >= start)


# Buttons.


def test_the_toggle_is_guarded(ros, peer):
    ros.set_parameters("dronegui_bridge", press_time=0.05)
    flying = ros.subscribe(Bool, "flying", LATCHED)
    refused = press(ros, "land")
    assert (refused.success, "make it fly" in refused.message) == (False, True)
    assert press(ros, "takeoff").success
    refused = press(ros, "takeoff")
    assert (refused.success, "would land it" in refused.message) == (False, True)
    assert press(ros, "land").success
    assert not press(ros, "land").success
    assert "assumed to fly" in switch(ros, "assume_flying", True).message
    assert not press(ros, "takeoff").success
    assert press(ros, "land").success
    assert "on the ground" in switch(ros, "assume_flying", False).message
    assert press(ros, "takeoff").success
    assert press(ros, "reset").success  # an emergency stop
    assert not press(ros, "land").success
    presses = runs(peer.packets, "take_off")
    assert len(presses) == 4
    assert all(len(pressed) >= 3 for pressed in presses), "a press has to survive a lost packet"
    assert len(runs(peer.packets, "reset")) == 1
    for expected in (False, True, False, True, False, False, True, False):
        assert flying.wait().data == expected


def test_reset_does_not_wait_for_another_button(ros, peer):
    takeoff, land, reset = (client_of(ros, name) for name in ("takeoff", "land", "reset"))
    ros.set_parameters("dronegui_bridge", press_time=4.0)
    taking_off = takeoff.call_async(Trigger.Request())
    peer.wait(lambda packet: packet.presses("take_off"))
    ros.set_parameters("dronegui_bridge", press_time=0.05)
    resetting = reset.call_async(Trigger.Request())
    again = takeoff.call_async(Trigger.Request())
    landing = land.call_async(Trigger.Request())
    peer.wait(lambda packet: packet.presses("reset") and packet.presses("take_off"))
    wait_until(lambda: all(future.done() for future in (taking_off, resetting, again, landing)), "all answers")
    assert taking_off.result().success
    assert resetting.result().success
    for refused in (again, landing):  # and none of them is told that the drone is on the ground, or flies
        assert (refused.result().success, refused.result().message) == (False, "take_off is still being pressed.")


def test_empty_messages_press_buttons_too(ros, peer):
    ros.set_parameters("dronegui_bridge", press_time=0.05)
    flying = ros.subscribe(Bool, "flying", LATCHED)
    takeoff, land = ros.publisher(Empty, "takeoff"), ros.publisher(Empty, "land")
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    land.publish(Empty())
    refusal = "A message on land was refused: The drone is assumed to be on the ground"
    reports.wait(lambda report: is_ours(report) and refusal in values_of(report)["last error"])
    takeoff.publish(Empty())
    flying.wait(lambda message: message.data)
    land.publish(Empty())
    flying.wait(lambda message: not message.data)
    assert len(runs(peer.packets, "take_off")) == 2
