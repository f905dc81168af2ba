# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge when something goes wrong, and how it leaves the drone behind."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from dronegui_peer import DroneGuiPeer
from processes import Process, when_listening
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import wait_until
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from drone_bridge.msg import CommandAxes, DroneGuiState

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture
def peer(closing):
    return closing(DroneGuiPeer())


#: For a GUI that sends no navdata; see test_dronegui_bridge_navdata.py for the others.
BLIND = {"receive_navdata": False, "bootstrap": False, "initially": "landed"}


def bridge(peer, **parameters):
    return Process.node("dronegui_bridge", port=peer.port, **BLIND, **parameters)


def press(ros, name):
    return ros.trigger(f"dronegui_bridge/{name}")


def fly_forward(ros, peer):
    """Command until the wire says so."""
    message = CommandAxes(pitch=1.0)
    publisher = ros.publisher(CommandAxes, "cmd_axes")
    wait_until(
        lambda: publisher.publish(message) or any(packet.is_following(pitch=-1) for packet in peer.packets),
        "the command on the wire",
        period_s=0.03,
    )


def assert_left_hovering(packets):
    assert len(packets) >= 3
    assert all(packet.is_hover for packet in packets[-3:]), packets[-5:]


# Leaving.


def test_a_signal_releases_a_button_that_is_pressed(ros, peer):
    with bridge(peer, press_time=5.0, command_timeout=10.0) as process:
        fly_forward(ros, peer)
        client = ros.node.create_client(Trigger, "dronegui_bridge/reset")
        assert client.wait_for_service(10)
        client.call_async(Trigger.Request())
        peer.wait(lambda packet: packet.presses("reset"))
        assert process.stop() == 0
    assert peer.packets[-4].presses("reset")
    assert_left_hovering(peer.packets)


def test_deactivation_leaves_hover_then_silence_and_activation_restarts_at_1(ros, peer):
    flying = ros.subscribe(Bool, "flying", LATCHED)
    with bridge(peer, command_timeout=10.0, press_time=0.05):
        fly_forward(ros, peer)
        assert press(ros, "takeoff").success
        flying.wait(lambda message: message.data)
        ros.transition("dronegui_bridge", "deactivate")
        left = len(peer.packets)
        assert_left_hovering(peer.packets)
        refused = press(ros, "land")
        assert (refused.success, "has to be active" in refused.message) == (False, True)
        ros.transition("dronegui_bridge", "cleanup")
        assert ros.set_parameters("dronegui_bridge", **{"port": peer.port, "first_packet_copies": 2})[0].successful
        assert not press(ros, "reset").success
        assert len(peer.packets) == left
        flying.clear()
        ros.transition("dronegui_bridge", "configure", "activate")
        assert flying.wait().data, "it has forgotten that the drone flies"
        peer.wait(since=left + 4)
        again = peer.packets[left:]
        assert [packet.seq for packet in again[:4]] == [1, 1, 2, 3]
        assert all(packet.is_hover for packet in again[:4]), "an old command was followed"
        assert press(ros, "land").success


def test_deactivation_during_a_press_releases_it_and_answers(ros, peer):
    flying = ros.subscribe(Bool, "flying", LATCHED)
    with bridge(peer, press_time=5.0):
        assert not flying.wait().data
        client = ros.node.create_client(Trigger, "dronegui_bridge/takeoff")
        assert client.wait_for_service(10)
        taking_off = client.call_async(Trigger.Request())
        peer.wait(lambda packet: packet.presses("take_off"))
        ros.transition("dronegui_bridge", "deactivate")
        wait_until(taking_off.done, "an answer")
        assert taking_off.result().success
        assert_left_hovering(peer.packets)
        flying.clear()
        ros.transition("dronegui_bridge", "activate")
        assert flying.wait().data


# The peer.


def test_an_absent_gui_is_reported_and_sent_to_until_it_starts(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    port = peer.port
    peer.close()
    with Process.node("dronegui_bridge", port=port, press_time=0.1, **BLIND) as process:
        process.wait_for_line(f"Nobody listens at 127.0.0.1:{port}")
        refused = press(ros, "takeoff")
        assert not refused.success
        assert f"nobody listens at 127.0.0.1:{port}" in refused.message
        report = reports.wait(lambda report: int(values_of(report)["undelivered packets"]) > 0)
        assert report.status[0].level == DiagnosticStatus.WARN
        late = DroneGuiPeer(port)
        try:
            first = late.wait()
            assert first.is_hover
            assert first.seq > 1
            assert press(ros, "takeoff").success, "the press that nobody heard was counted"
            reports.wait(lambda report: report.status[0].level == DiagnosticStatus.OK)
            numbers = [packet.seq for packet in late.packets]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        finally:
            late.close()


def test_an_unresolvable_host_is_retried_and_the_bridge_can_be_stopped(ros):
    with Process.node("dronegui_bridge", host="no such host", **BLIND) as process:
        process.wait_for_line(r"no such host:5560 can't be reached: .* Trying again in")
        assert "found its GUI's host" in press(ros, "takeoff").message
        assert process.stop() == 0


@pytest.fixture
def drone():
    """An emulated drone behind a network that loses and reorders packets."""
    faults = ("--loss", "0.3", "--reorder", "0.3", "--seed", "1")
    with Process.module(
        "drone_bridge.dronegui.emulator",
        "--bootstrapped",
        "--no-navdata",
        "--navdata-source-port",
        "0",
        "--port",
        "0",
        *faults,
    ) as process:
        when_listening(process)
        yield process


def test_lost_and_reordered_packets_do_not_confuse_the_toggle(ros, drone):
    states = ros.subscribe(DroneGuiState, "dronegui/state")
    with bridge(drone, press_time=1.0):
        states.wait()  # services are there before anything is sent
        assert press(ros, "takeoff").success
        drone.wait_for_line("landed -> taking off")
        # Two packets in five get lost or come too late: of twenty that say that it is released, one gets through.
        states.clear()
        for _ in range(20):
            states.wait()
        assert press(ros, "land").success
        drone.wait_for_line("(taking off|flying) -> landing")
        drone.wait_for_line("landing -> landed")
    assert drone.stop() == 0
    assert int(drone.wait_for_line(r"(\d+) late")[1]) > 0
