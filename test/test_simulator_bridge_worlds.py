# SPDX-License-Identifier: Apache-2.0
"""What simulator_bridge leaves behind: a world's mark, how the vehicle is built, and a simulator that lives on."""

import math
import signal
import sys

import pytest
from geometry_msgs.msg import Twist, Vector3
from nav_msgs.msg import Odometry
from processes import Process, executable, when_listening
from ros_session import Inbox, wait_until
from simulator_client import SimulatorClient
from simulator_fixtures import BUOY, LEARNED, VEHICLE, bridge, make_peer
from simulator_peer import SILENCE, STILL

from drone_bridge import srv
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

MARK = (VEHICLE, "drone_bridge.world")
BODY_TO_MODEL = (VEHICLE, "drone_bridge.btom")
EAST = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))
#: A bridge that gives a simulator on a busy machine more time to notice that it is left.
PATIENT_BRIDGE = """
from drone_bridge.ros import link_node
from drone_bridge.simulator.bridge import node

link_node.STOP_TIMEOUT_S = node.LEAVE_TIMEOUT_S = 4.0
raise SystemExit(node.main())
"""


@pytest.fixture
def peer(closing):
    return closing(make_peer())


def test_a_vehicle_that_has_come_to_rest_elsewhere_is_not_taken_for_one_that_never_moved(peer, ros):
    odom = ros.subscribe(Odometry, "odom")
    with bridge(
        peer,
        body_to_model=LEARNED,
        entities=[""],
        cameras=[""],
        triggers=[""],
        item_events="none",
    ):
        peer.wait_until_settled()
        wait_until(lambda: BODY_TO_MODEL in peer.extended, "what was learned")
        peer.entities[VEHICLE] = STILL | {Attribute.ORIENTATION: EAST}
        peer.hang_up()
        _, streams = peer.wait_until_settled()

        def is_told():
            peer.step(streams, peer.entities[VEHICLE], stream=1)
            return len(odom)

        wait_until(is_told, "odometry")
        q = odom.wait().pose.pose.orientation
        assert (q.w, q.x, q.y, q.z) == pytest.approx((1.0, 0.0, 0.0, 0.0))  # along x of odom


def test_a_waiting_run_is_answered_when_the_simulator_is_lost(peer, ros):
    peer.answers[sim.SetEntity] = SILENCE
    with bridge(peer, body_to_model=LEARNED, request_timeout=1.0) as process:
        peer.wait_for(sim.SetEntity)
        response = ros.call(srv.Run, "simulator_bridge/run", srv.Run.Request())
        assert (response.success, response.message) == (False, "The simulator has not answered ESET within 1 s.")
        del peer.answers[sim.SetEntity]
        process.wait_for_line(r"principal axes to its model is \(w")
        assert ros.call(srv.Run, "simulator_bridge/run", srv.Run.Request()).success


def test_a_world_that_another_bridge_has_marked_keeps_its_mark(peer):
    mark = peer.extended[MARK] = bytes(range(16))
    with bridge(peer):
        requests, streams = peer.wait_until_settled()
        wait_until(lambda: streams.asked_for(sim.StreamCamera), "the stream of the camera")
        assert len(requests.asked_for(sim.AddCamera)) == 1
        peer.hang_up()
        requests, streams = peer.wait_until_settled()
        wait_until(lambda: streams.asked_for(sim.StreamCamera), "the stream of the camera")
        assert not requests.asked_for(sim.AddCamera)
        assert peer.extended[MARK] == mark
        # A new world has none of our cameras, whoever has marked it first.
        requests, _ = peer.restart(entities={VEHICLE: dict(STILL), BUOY: dict(STILL)}, extended={MARK: b"x" * 16})
        wait_until(lambda: requests.asked_for(sim.AddCamera), "the camera")
        assert peer.extended[MARK] == b"x" * 16


def test_a_bridge_that_connects_first_says_neutral(peer):
    """To a new simulator and to one that it knows, whether or not it has ever steered."""
    neutral = [sim.SetEntity(VEHICLE, each, STILL[each]) for each in (Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY)]
    with bridge(peer):
        requests, streams = peer.wait_until_settled()
        for _ in range(2):
            assert requests.requests[:2] == neutral
            assert not streams.asked_for(sim.SetEntity)
            peer.hang_up()
            requests, streams = peer.wait_until_settled()


def test_a_simulator_without_the_vehicle_may_refuse_that(peer, ros):
    peer.answers[sim.SetEntity] = sim.Error(0, "No entity with given ID.")
    with bridge(peer) as process:
        peer.wait_until_settled()
        assert ros.call(srv.Run, "simulator_bridge/run", srv.Run.Request()).success
        assert not process.count_lines("refuses to steer")


def test_what_a_killed_bridge_has_left_moving_stands_once_another_connects(ros, start_child, closing):
    """With real ones."""
    emulator = when_listening(start_child(executable("simulator_emulator"), "--port", 0))
    client = closing(SimulatorClient(emulator.port))
    commands = ros.publisher(Twist, "cmd_vel", subscribers=0)

    def join():
        node = bridge(emulator, command_timeout=60.0, entities=[""], cameras=[""], triggers=[""])
        node.wait_for_line("Connected to")
        return node

    def velocity():
        return client.get(sim.GetEntity(VEHICLE, Attribute.VELOCITY)).value

    def moves():
        commands.publish(Twist(linear=Vector3(x=0.5)))
        return any(velocity())

    with join() as first:
        client.ask(sim.Run(0))
        wait_until(moves, "motion", period_s=0.05)
        first.send(signal.SIGKILL)
        first.wait()
    assert any(velocity())
    with join():
        wait_until(lambda: not any(velocity()), "a vehicle that stands")


def test_a_simulator_can_go_on_writing_to_a_bridge_that_ends(peer):
    written = Inbox()

    def write(client):
        if client not in (requests, streams):  # but the one that tried SPY, which may still be leaving
            return
        try:
            for _ in range(3):  # the first one gets a connection reset that has been closed
                client.socket.sendall(sim.frame(sim.Completed()))
        except OSError as error:
            written.put(error)
        else:
            written.put(None)

    with Process(sys.executable, "-c", PATIENT_BRIDGE, "--ros-args", "-p", f"port:={peer.port}"):
        requests, streams = peer.wait_until_settled()
        assert requests is not streams
        peer.parting = write
    assert [written.wait(), written.wait()] == [None, None]
