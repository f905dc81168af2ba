# SPDX-License-Identifier: Apache-2.0
"""What simulator_bridge leaves behind: a world's mark, how the vehicle is built, and a simulator that lives on."""

import itertools
import math
import signal
import subprocess
import sys
import time

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
from drone_bridge.simulator.bridge.steering import MOST_UNCHANGED, is_dead, make_owner
from drone_bridge.simulator.codec import Attribute

MARK = (VEHICLE, "drone_bridge.world")
BODY_TO_MODEL = (VEHICLE, "drone_bridge.btom")
STEERED = (VEHICLE, "drone_bridge.steered")
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
        convert_frames=False,
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
        assert (q.w, q.x, q.y, q.z) == pytest.approx(EAST)


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


def test_a_vehicle_that_a_killed_bridge_has_left_moving_is_stopped_and_others_are_left_alone(peer):
    with bridge(peer):
        requests, _ = peer.wait_until_settled()
        assert not requests.asked_for(sim.SetEntity)
    peer.extended[STEERED] = b"1"  # as a killed bridge of version 0.2 leaves it
    with bridge(peer) as process:
        peer.wait_for(sim.SetEntity)
        process.wait_for_line("A bridge was killed while it steered entity 0")
        wait_until(lambda: peer.extended[STEERED] == b"0", "the end of the mark")
        assert all(not any(request.value) for request in peer.clients[0].asked_for(sim.SetEntity))


def test_a_vehicle_that_another_bridge_steers_is_left_alone_for_as_long_as_that_one_lives(peer):
    beats = itertools.count()
    is_alive = True

    def answer(request):
        if is_alive and request.key == STEERED[1]:
            peer.extended[STEERED] = b"somebody else's " + bytes([next(beats) % 256])
        return peer.usual_answer(request)

    peer.answers[sim.GetExtended] = answer
    with bridge(peer):
        looks = [lambda request: request.key == STEERED[1]] * 3 * MOST_UNCHANGED
        for look in looks:
            peer.wait_for(sim.GetExtended, look)
        assert not peer.requests(sim.SetEntity)
        is_alive = False
        assert not any(peer.wait_for(sim.SetEntity).value)
        wait_until(lambda: peer.extended[STEERED] == b"0", "the end of the mark")


def test_the_mark_of_a_process_of_this_machine_tells_whether_it_lives(peer):
    print_own = "from drone_bridge.simulator.bridge.steering import make_owner as m; print(m().hex())"
    dead = bytes.fromhex(subprocess.check_output([sys.executable, "-c", print_own], text=True))
    assert [is_dead(owner) for owner in (dead, make_owner(), b"somebody else's ", b"1")] == [True, False, False, False]
    peer.extended[STEERED] = dead + b"0000"
    with bridge(peer):
        assert not any(peer.wait_for(sim.SetEntity).value)
        assert len([each for each in peer.requests(sim.GetExtended) if each.key == STEERED[1]]) == 1


def test_a_bridge_that_lost_its_connection_knows_its_own_mark(peer, ros):
    with bridge(peer, command_timeout=60.0, item_events="none") as process:
        peer.wait_until_settled()
        commands = ros.publisher(Twist, "cmd_vel")
        commands.publish(Twist(linear=Vector3(x=1.0)))
        peer.wait_for(sim.SetExtended, lambda request: request.key == STEERED[1])
        own = peer.extended[STEERED][:16]
        for _ in range(2):
            peer.hang_up()
            peer.wait_until_settled()
            peer.wait_for(sim.SetExtended, lambda request: request.key == STEERED[1])
            assert peer.extended[STEERED][:16] == own
        ros.transition("simulator_bridge", "deactivate")
        peer.extended[STEERED] = own + b"1234"  # as if it had been deactivated without a connection
        ros.transition("simulator_bridge", "activate")
        process.wait_for_line("This bridge lost its connection, or was deactivated without one, while it steered")
        wait_until(lambda: peer.extended[STEERED] == b"0", "the end of the mark")
        assert not process.count_lines("was killed")


def test_whoever_is_left_stops_what_a_killed_bridge_has_left_moving(ros, start_child, closing):
    """Three real ones, one after the other."""
    emulator = when_listening(start_child(executable("simulator_emulator"), "--port", 0))
    client = closing(SimulatorClient(emulator.port))
    commands = {name: ros.publisher(Twist, f"{name}/cmd_vel", subscribers=0) for name in ("first", "second")}

    parameters = {"command_timeout": 60.0, "body_to_model": [1.0, 0.0, 0.0, 0.0]}

    def join(name):
        node = Process.node("simulator_bridge", port=emulator.port, remap=[f"__ns:=/{name}"], **parameters)
        node.wait_for_line("Connected to")
        return node

    def velocity():
        return client.get(sim.GetEntity(VEHICLE, Attribute.VELOCITY)).value

    def steer(name):
        def moves():
            commands[name].publish(Twist(linear=Vector3(x=0.5)))
            return any(velocity())

        wait_until(moves, "motion", period_s=0.05)

    def kill(node):
        node.send(signal.SIGKILL)
        node.wait()

    with join("first") as first:
        client.ask(sim.Run(0))
        steer("first")
        with join("second") as second:
            until_s = time.monotonic() + 3.0
            while time.monotonic() < until_s:
                assert any(velocity())
            kill(first)
            wait_until(lambda: not any(velocity()), "a vehicle that stands")
            assert second.count_lines("A bridge was killed") == 1
            steer("second")
            kill(second)
    assert any(velocity())
    with join("third") as third:
        wait_until(lambda: not any(velocity()), "a vehicle that stands")
        third.wait_for_line("A bridge was killed")


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
