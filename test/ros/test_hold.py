# SPDX-License-Identifier: Apache-2.0
"""Hold: ignored commands, and who may hold and resume, over real DDS and on the wire."""

import signal

import pytest
from dronegui_peer import DroneGuiPeer
from geometry_msgs.msg import Twist, TwistStamped
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating, wait_until
from std_msgs.msg import Bool
from twists import twist
from web_viewer import Pilot, web_bridge

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PERIOD_S = 0.05
FORWARD = twist(forward=1.0)


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path, monkeypatch):
    """Folder of hold files for one test."""
    monkeypatch.setenv("ROS_HOME", str(tmp_path))


@pytest.fixture
def peer(closing):
    return closing(DroneGuiPeer())


@pytest.fixture
def bridge(peer):
    with start(peer) as process:
        peer.wait()
        yield process


def start(peer):
    return Process.node("dronegui_bridge", port=peer.port, receive_navdata=False)


def hold(ros, data):
    answer = ros.switch("dronegui_bridge/hold", data)
    assert answer.success
    return answer.message


def stranger(ros, message_type=Twist, topic="cmd_vel"):
    """Node that commands a vehicle 20 times per second."""
    publisher = ros.publisher(message_type, topic)

    def publish(_):
        if message_type is Twist:
            publisher.publish(FORWARD)
        else:
            ros.publish_fresh(publisher, TwistStamped(twist=FORWARD))

    return repeating(publish, PERIOD_S)


def is_moving(packet):
    """Whether the drone follows a stranger. The brake after that tilts it by less, or backward."""
    return packet.state["pitch"] < -0.05


def flies_left_only(packet):
    """Whether it flies as these tests' pilots want, and no longer by inertia, as the stranger wanted."""
    return packet.state["roll"] < 0.0 and not is_moving(packet)


def flies_left_steadily(peer, packets=20):
    """Whether it has done so for a while, so that the stranger's motion has ended."""
    newest = peer.packets[-packets:]
    return len(newest) == packets and all(
        flies_left_only(packet) and abs(packet.state["pitch"]) < 0.02 for packet in newest
    )


def nothing_moves(peer, packets=30):
    """Assert that the drone hovers from now on, for this many packets."""
    peer.forget()
    wait_until(lambda: len(peer.packets) >= packets, "packets")
    assert not any(map(is_moving, peer.packets))


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("release", marks=pytest.mark.exhaustive),
        "killed browser",
        pytest.param("killed server", marks=pytest.mark.exhaustive),
    ],
)
def test_however_the_page_s_helm_ends_the_vehicle_holds(ros, peer, bridge, way):
    held = ros.subscribe(Bool, "held", LATCHED)
    with (
        web_bridge() as server,
        Pilot(server.address) as pilot,
        stranger(ros),
        stranger(ros, TwistStamped, "cmd_vel_stamped"),
    ):
        peer.wait(is_moving)
        pilot.wait_for(lambda: pilot.vehicles.get("/cmd_vel_stamped", {}).get("holds"), "a vehicle that can be held")
        assert pilot.vehicles["/cmd_vel_stamped"]["holds"] == ["/dronegui_bridge/hold"]
        pilot.take("/cmd_vel_stamped")

        def flies_as_wanted():
            if pilot.vehicles["/cmd_vel_stamped"]["pilot"] != "you":  # this machine was stalled for longer
                hold(ros, False)
                pilot.take("/cmd_vel_stamped")
            pilot.push(y=1.0)
            return flies_left_steadily(peer)

        wait_until(flies_as_wanted, "what the pilot wants")
        held.clear()
        peer.forget()
        if way == "release":
            pilot.send(op="release")
        elif way == "killed browser":
            pilot.connection.socket.close()
        else:
            server.send(signal.SIGKILL)
            server.wait()
        held.wait(lambda message: message.data)
        assert not any(map(is_moving, peer.packets))  # not even briefly
        nothing_moves(peer)
        assert all(packet.is_hover for packet in peer.packets)
        hold(ros, False)
        peer.wait(is_moving)
