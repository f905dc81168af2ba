# SPDX-License-Identifier: Apache-2.0
"""simulator_bridge and an emulator that behaves as the CUAUV server: turned axes, cameras, turbulence, leaving."""

import math
import signal
import socket
import struct
import sys

import pytest
from diagnostics import status
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, TwistStamped, Vector3, Wrench
from nav_msgs.msg import Odometry
from processes import Process, when_listening
from ros_session import wait_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu
from simulator_client import SimulatorClient

from drone_bridge import srv
from drone_bridge.msg import CameraView
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType

VEHICLE = 0
COMMAND = (sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0, "--scene", "buoys")
# From the principal axes to the model: a quarter turn about z, then a tilt of 0.6 rad about x.
BODY_TO_MODEL = "0.6755 0.2090 0.2090 0.6755"
LEARNED = r"principal axes to its model is \(w"
EAST = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))  # of the model


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, *arguments))


@pytest.fixture
def connect(closing):
    return lambda emulator: closing(SimulatorClient(emulator.port))


def bridge(emulator, **parameters):
    parameters = {"poll_period": 0.1, "request_timeout": 20.0, **parameters}
    process = Process.node("simulator_bridge", port=emulator.port, **parameters)
    process.wait_for_line("Connected to")  # services return an error until then
    return process


def call(ros, name, service, /, **fields):
    response = ros.call(service, f"simulator_bridge/{name}", service.Request(**fields))
    assert response.success, response.message
    return response


def velocity(client):
    return client.get(sim.GetEntity(VEHICLE, Attribute.VELOCITY)).value


def steer(client, publisher):
    """Command 1 m/s ahead until the vehicle has a velocity, and return it."""
    command = Twist(linear=Vector3(x=1.0))
    wait_until(lambda: publisher.publish(command) or math.hypot(*velocity(client)) > 0.1, "a velocity", period_s=0.05)
    return velocity(client)


def near(*values):
    return pytest.approx(values, abs=1e-3)


# Where the vehicle points to.


@pytest.mark.parametrize("btom", ["1 0 0 0", BODY_TO_MODEL])
def test_a_vehicle_that_was_turned_while_paused_is_known_to_look_where_it_does(ros, emulate, connect, btom):
    emulator = emulate("--quirks", "real", "--btom", btom)
    client = connect(emulator)
    client.get(sim.SetEntity(VEHICLE, Attribute.ORIENTATION, EAST))
    before = client.get(sim.GetEntity(VEHICLE, Attribute.ORIENTATION)).value
    odom = ros.subscribe(Odometry, "odom")
    with bridge(emulator) as process:
        process.wait_for_line(LEARNED)
        assert client.get(sim.GetEntity(VEHICLE, Attribute.ORIENTATION)).value == near(*before)  # as it was
        assert steer(client, ros.publisher(Twist, "cmd_vel")) == near(0, 1, 0)  # east

        def is_published():
            call(ros, "run", srv.Run, steps=1, wait=True)
            return len(odom)

        wait_until(is_published, "odometry")
        q = odom.wait().pose.pose.orientation
        assert abs(q.w) == pytest.approx(1.0, abs=0.01)  # east is where ROS looks without a rotation


def test_a_vehicle_whose_heading_can_not_be_known_is_not_steered_until_it_is(ros, emulate, connect):
    emulator = emulate("--quirks", "real", "--btom", BODY_TO_MODEL, "--running")
    client = connect(emulator)
    with bridge(emulator) as process:
        process.wait_for_line("WARN.*The simulation was running already.*it is not steered. Pause the simulation")
        publisher = ros.publisher(Twist, "cmd_vel")
        command = Twist(linear=Vector3(x=1.0))

        def is_refused(values):
            publisher.publish(command)
            return int(values.get("unsteered_commands", 0)) > 0

        values = status(ros, is_refused)
        assert values["body_to_model"] == "not known"
        assert values["heading"] == "The vehicle's heading is not known"
        assert ros.subscribe(Imu, "imu/data").wait().orientation_covariance[0] == -1.0
        assert math.hypot(*velocity(client)) < 0.1
        doubtful = call(ros, "get_entity_state", srv.GetState, id=VEHICLE)
        assert "its orientation may be wrong" in doubtful.message
        call(ros, "pause", srv.SimulatorRequest)
        process.wait_for_line(LEARNED)
        assert "heading" not in status(ros, lambda values: values["body_to_model"] != "not known")
        assert steer(client, publisher)[0] == pytest.approx(1.0, abs=0.1)  # still north, more or less


def test_a_simulation_that_the_bridge_unpauses_runs_once_the_heading_is_known(ros, emulate, connect):
    emulator = emulate("--quirks", "real", "--btom", BODY_TO_MODEL)
    with bridge(emulator, run_on_connect=True) as process:
        process.wait_for_line(LEARNED)
        odom = ros.subscribe(Odometry, "odom")
        assert abs(odom.wait().pose.pose.orientation.z) == pytest.approx(math.sqrt(0.5), abs=0.01)  # north
        assert process.count_lines("WARN") == 0


# Cameras.


@pytest.mark.parametrize("quirks", ["real", "none"])
def test_a_camera_that_is_set_sees_what_one_sees_that_is_added_there(ros, emulate, quirks):
    emulator = emulate("--quirks", quirks, "--btom", BODY_TO_MODEL)
    views = ros.subscribe(CameraView, "camera_view")
    pose = Pose(position=Point(x=0.5, y=0.3, z=-0.2), orientation=Quaternion(z=0.1, w=math.sqrt(0.99)))
    with bridge(emulator) as process:
        process.wait_for_line(LEARNED)
        moved = call(ros, "add_camera", srv.AddCamera, name="moved", targets=[2]).id
        call(ros, "set_camera", srv.SetCamera, id=moved, set_position=True, set_orientation=True, pose=pose)
        call(ros, "add_camera", srv.AddCamera, name="added", targets=[2], pose=pose)
        seen = {}

        def are_seen():
            call(ros, "run", srv.Run, steps=1, wait=True)
            seen.update((view.camera, view) for _ in range(len(views)) for view in [views.wait()])
            return len(seen) == 2

        wait_until(are_seen, "what both cameras see")
        there, here = ((view.x, view.y, view.radius, view.depth) for view in (seen["added"], seen["moved"]))
        assert here == pytest.approx(there, abs=1e-3)


def test_a_camera_that_somebody_else_has_added_is_set_about_the_model_too(ros, emulate, connect):
    emulator = emulate("--quirks", "real", "--btom", BODY_TO_MODEL)
    client = connect(emulator)
    camera = client.add(sim.AddCamera(VEHICLE, (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0))
    stream = client.add(sim.StreamCamera(camera, 1, 2))
    with bridge(emulator) as process:
        process.wait_for_line(LEARNED)
        pose = Pose(position=Point(x=1.0))  # ahead
        call(ros, "set_camera", srv.SetCamera, id=camera, set_position=True, pose=pose)
        client.get(sim.Run(1))
        seen = client.wait_for(sim.CameraData, lambda data: data.id == stream)
        assert seen.depth == pytest.approx(4.0, abs=0.01)  # the buoy is at 5 m


# Turbulence.


@pytest.mark.parametrize("quirks", ["real", "none"])
def test_turbulence_is_removed_by_the_id_that_adding_it_gave(ros, emulate, connect, quirks):
    emulator = emulate("--quirks", quirks)
    client = connect(emulator)
    force = Wrench(force=Vector3(x=30.0))
    with bridge(emulator):
        added = [call(ros, "add_turbulence", srv.AddTurbulence, minimum=force, maximum=force).id for _ in range(2)]
        for number in added:
            call(ros, "remove", srv.RemoveItem, type=ItemType.OBJECT, id=number)
        call(ros, "run", srv.Run, steps=10, wait=True)
        assert velocity(client) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)  # neither pushed nor without gravity


# Time.


def test_a_bridge_that_publishes_the_clock_stamps_and_judges_commands_by_it(ros, emulate, connect):
    emulator = emulate()
    client = connect(emulator)
    odom = ros.subscribe(Odometry, "odom")
    with bridge(emulator, publish_clock=True, run_on_connect=True):
        stamp = odom.wait(lambda message: message.header.stamp.nanosec > 0).header.stamp
        assert stamp.sec < 100  # from 0 at the bridge's start
        publisher = ros.publisher(TwistStamped, "cmd_vel_stamped")

        def steer():
            command = TwistStamped(header=odom.wait().header)
            command.twist.linear.x = 1.0
            publisher.publish(command)
            return math.hypot(*velocity(client)) > 0.5

        wait_until(steer, "the commanded velocity")


def test_by_default_there_is_no_clock_and_a_second_one_is_named(ros, emulate):
    emulator = emulate("--running")
    with (
        bridge(emulator, body_to_model=[1.0, 0.0, 0.0, 0.0]),
        bridge(emulator, publish_clock=True, body_to_model=[1.0, 0.0, 0.0, 0.0], remap=["__node:=first"]) as first,
    ):
        wait_until(lambda: ros.node.count_publishers("/clock") == 1, "the clock of the one that is to publish it")
        ros.node.create_publisher(Clock, "/clock", 1)
        first.wait_for_line(r"WARN.*/clock is published by /test_session, too: set publish_clock to false")
        values = status(ros, lambda values: "clock" in values)
        assert values["clock"] == "/clock is published by /test_session, too"


# Leaving.


def test_a_server_that_dies_of_clients_that_just_close_survives_the_bridge(ros, emulate, connect):
    emulator = emulate("--quirks", "real", "--fragile", "--running")
    for _ in range(3):
        with bridge(emulator, body_to_model=[1.0, 0.0, 0.0, 0.0]):
            ros.subscribe(Odometry, "odom").wait()
    rude = connect(emulator)
    rude.add(sim.StreamEntity(VEHICLE, 1, (Attribute.POSITION,)))
    rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    rude.close()
    assert emulator.wait() == -signal.SIGPIPE
    emulator.wait_for_line("killed by SIGPIPE")
