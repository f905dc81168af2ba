# SPDX-License-Identifier: Apache-2.0
"""simulator_server and its clients, where ROS has no more than topics: a vehicle's odometry, and perhaps others."""

import math
import os
import signal
import threading
import time

import pytest
from diagnostics import status, wait_for_count
from geometry_msgs.msg import PoseStamped, TransformStamped, Twist
from nav_msgs.msg import Odometry
from processes import Process
from rclpy.executors import SingleThreadedExecutor
from ros_session import module_ros, wait_until
from rosgraph_msgs.msg import Clock
from simulator_client import SimulatorClient
from tf2_msgs.msg import TFMessage

from drone_bridge import srv
from drone_bridge.ros.time import NANOSECONDS
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

VEHICLE, BUOY, GATE = 0, 3, 4
LEVEL = (1.0, 0.0, 0.0, 0.0)
UNKNOWN = sim.Error(0, "The state of this entity is not known.")
TIMEOUT_S = 0.5  # of commands, and of sources
LISTED_COUNT = 8  # fewer than the requests that a service keeps


class Server:
    """The server, and what feeds it."""

    def __init__(self, ros, name, **parameters):
        self.ros, self.name = ros, name
        parameters = {"command_timeout": TIMEOUT_S, "source_timeout": TIMEOUT_S, "bridge": "", **parameters}
        self.process = Process.node("simulator_server", port=0, remap=(f"__ns:=/{name}",), **parameters)
        self.port = int(self.process.wait_for_line(r"Listening to clients on .*:(\d+)")[1])
        self.commands = ros.subscribe(Twist, f"/{name}/cmd_vel")
        self.odometry = ros.publisher(Odometry, f"/{name}/odom", 10)
        self.clients = []
        self._stop = threading.Event()
        self._feeder = None
        self.count = 0

    def connect(self):
        self.clients.append(SimulatorClient(self.port))
        return self.clients[-1]

    def publish(self, east=0.0, **twist):
        """One state of the vehicle, which looks north."""
        message = Odometry()
        message.header.stamp = self.ros.node.get_clock().now().to_msg()
        message.pose.pose.position.x = east
        message.pose.pose.orientation.z = message.pose.pose.orientation.w = math.sqrt(0.5)
        for axis, value in twist.items():
            setattr(message.twist.twist.linear, axis, value)
        self.odometry.publish(message)

    def feed(self):
        """Publish states until the block is left; x counts them."""

        def run():
            while not self._stop.wait(0.02):
                self.count += 1
                self.publish(float(self.count))

        self._stop.clear()
        self._feeder = threading.Thread(target=run)
        self._feeder.start()
        return self

    def steer(self, client):
        """Command 0.5 m/s until we hear it: the server may not have found our subscription yet."""
        request = sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.5, 0.0, 0.0))
        wait_until(lambda: client.get(request) and len(self.commands), "the command", period_s=0.05)

    def starve(self):
        if self._feeder:
            self._stop.set()
            self._feeder.join()
            self._feeder = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.starve()

    def close(self):
        self.starve()
        for client in self.clients:
            client.close()
        self.process.end()


ros = module_ros()


@pytest.fixture(scope="module")
def shared(ros):
    server = Server(ros, "shared", entities=["3:buoy pose=/buoy/pose render=red_buoy radius=0.15", "4 tf=gate"])
    yield server
    server.close()


@pytest.fixture
def server(shared):
    shared.starve()
    yield shared
    shared.starve()
    for client in shared.clients:
        client.close()
    shared.clients.clear()


@pytest.fixture
def client(server):
    return server.connect()


def wait_for_state(client, entity=VEHICLE):
    wait_until(lambda: isinstance(client.ask(sim.GetEntity(entity, 0)), sim.EntityGot), "a state")


def test_a_visualizer_finds_the_vehicle_with_odometry_alone(server, client):
    listed = client.get(sim.ListEntities()).ids
    assert VEHICLE in listed
    # Before anything is known it is not drawn; the answer is no longer than what the visualizer has room for.
    missing = client.ask(sim.GetExtended(VEHICLE, "render"))
    assert missing == sim.Error(0, "No extended entity attribute with given key.")
    assert len(sim.frame(missing)) <= 90
    with server.feed():
        wait_for_state(client)
        for _ in range(3):
            assert client.get(sim.ListEntities()).ids == listed
            assert client.get(sim.GetExtended(VEHICLE, "render")).data == b"vehicle"
            north, east, down = client.get(sim.GetEntity(VEHICLE, Attribute.POSITION)).value
            assert (north, down) == (0.0, 0.0)
            assert east > 0.0
            assert client.get(sim.GetEntity(VEHICLE, Attribute.ORIENTATION)).value == pytest.approx(LEVEL)


def test_eset_is_cmd_vel_and_silence_is_zero(server, client):
    with server.feed():
        wait_for_state(client)
        server.commands.clear()
        client.socket.sendall(
            client.prepare(sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.5, 0.25, -0.125)))
            + client.prepare(sim.SetEntity(VEHICLE, Attribute.ANGULAR_VELOCITY, (0.1, 0.2, 0.3)))
        )
        twist = server.commands.wait(lambda twist: twist.angular.z)
        assert (twist.linear.x, twist.linear.y, twist.linear.z) == pytest.approx((0.5, -0.25, 0.125))
        assert (twist.angular.x, twist.angular.y, twist.angular.z) == pytest.approx((0.1, -0.2, -0.3))
        assert server.commands.wait(lambda twist: twist == Twist())
        client.next_event()  # the client is still there
        for _ in range(2):  # and for who has missed it, from then on nothing else
            assert server.commands.wait() == Twist()


def test_a_bridge_that_has_left_a_call_unanswered_is_not_waited_for_again_until_it_answers(ros):
    """DDS takes 20 s to find that a node was killed, if that happened right after it was discovered."""
    timeout_s = 2.0
    server = Server(ros, "silent", bridge="nobody", request_timeout=timeout_s)
    bridge, executor = ros.idle_node(), SingleThreadedExecutor(context=ros.context)

    asked = []

    def list_entities(request, response):
        asked.append(request)
        response.success, response.ids, response.names = True, [VEHICLE, BUOY], ["", ""]
        return response

    def listed_in_s():
        asked_s = time.monotonic()
        assert client.get(sim.ListEntities()).ids == (VEHICLE,)
        return time.monotonic() - asked_s

    try:
        client = server.connect()
        bridge.create_service(srv.ListEntities, "/silent/nobody/list_entities", list_entities)
        wait_until(lambda: listed_in_s() >= timeout_s, "a call without an answer")
        for _ in range(LISTED_COUNT):
            listed_in_s()
        executor.add_node(bridge)
        threading.Thread(target=executor.spin, daemon=True).start()
        wait_until(lambda: client.get(sim.ListEntities()).ids == (VEHICLE, BUOY), "the answer")
        assert len(asked) < LISTED_COUNT / 2  # some, where the machine was busy for longer than it is left alone
    finally:
        executor.shutdown()
        server.close()


def test_entities_of_poses_and_tf_cameras_and_triggers(ros, server, client):
    assert sorted(client.get(sim.ListEntities()).ids) == [VEHICLE, BUOY, GATE]
    poses = ros.publisher(PoseStamped, "/buoy/pose", 10)
    transforms = ros.publisher(TFMessage, "/tf", 10)
    pose = PoseStamped()
    pose.pose.position.y = 2.0  # north, ahead
    gate = TransformStamped(child_frame_id="gate")
    gate.header.frame_id = "odom"
    gate.transform.translation.z = 5.0

    def tell():
        poses.publish(pose)
        transforms.publish(TFMessage(transforms=[gate]))
        server.publish(0.0)
        return client.ask(sim.GetEntity(GATE, 0)) != UNKNOWN and client.ask(sim.GetEntity(BUOY, 0)) != UNKNOWN

    wait_until(tell, "all states")
    assert client.get(sim.GetEntity(GATE, 0)).value == (0.0, 0.0, -5.0)
    assert client.get(sim.GetExtended(BUOY, "render")).data == b"red_buoy"
    camera = client.add(sim.AddCamera(VEHICLE, LEVEL, (0.0, 0.0, 0.0), 1.0))
    stream = client.add(sim.StreamCamera(camera, 1, BUOY))
    near = client.add(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, BUOY, 3.0)))
    wait_until(lambda: tell() and any(isinstance(event, sim.CameraData) for event in client.events), "a view")
    assert client.wait_for(sim.Triggered).id == near
    tell()
    view = client.wait_for(sim.CameraData, lambda data: data.id == stream)
    assert (view.x, view.y, view.radius, view.depth) == pytest.approx((0.0, 0.0, 0.075, 2.0))
    pose.pose.position.y = 20.0
    wait_until(lambda: tell() and client.get(sim.GetEntity(BUOY, 0)).value[0] > 10.0, "the buoy to move")
    assert client.wait_for(sim.Untriggered).id == near
    # A view of what is not known any more is not told.
    wait_until(lambda: client.ask(sim.GetEntity(BUOY, 0)) == UNKNOWN, "the buoy to be silent")
    client.take(sim.CameraData)
    with server.feed():
        wait_for_state(client)
        client.settle()
    assert not client.take(sim.CameraData)


def test_a_client_that_hangs_is_given_up_and_disturbs_nobody(ros, server, client):
    before = status(ros)
    with server.feed():
        wait_for_state(client)
        hung = SimulatorClient(server.port, receive_buffer=4096)
        requests = b"".join(hung.prepare(sim.StreamEntity(VEHICLE, 1, tuple(Attribute) * 5)) for _ in range(800))
        hung.socket.sendall(requests)
        wait_for_count(ros, "lost_connections", 1, before)
        client.settle()
        hung.close()


def test_clients_are_told_of_the_end_and_the_vehicle_is_left_standing(ros):
    server = Server(ros, "ending", command_timeout=30.0)
    client = server.connect()
    try:
        with server.feed():
            wait_for_state(client)
            server.steer(client)
            assert server.commands.wait().linear.x == pytest.approx(0.5)
            os.kill(server.process.pid, signal.SIGTERM)
            client.wait_for(sim.Completed)
            client.wait_until_closed()
            assert server.commands.wait(lambda twist: twist == Twist())
            assert server.process.wait() == 0
    finally:
        server.close()


def test_clock_gives_the_time_and_whether_it_runs(ros):
    server = Server(ros, "clocked", use_sim_time=True)
    clock = ros.publisher(Clock, "/clock", 10)
    client = server.connect()
    seconds = 100.0

    def tick(by):
        nonlocal seconds
        seconds += by
        message = Clock()
        message.clock.sec, message.clock.nanosec = int(seconds), int(seconds % 1 * NANOSECONDS)
        clock.publish(message)

    try:

        def is_known():
            tick(0.01)
            server.publish()
            return isinstance(client.ask(sim.GetEntity(VEHICLE, 0)), sim.EntityGot)

        wait_until(is_known, "a state")
        # While the time stands still, the world is paused, and what was true stays true.
        stands = sim.Error(0, "The time on /clock stands still, and can't be advanced from here.")
        wait_until(lambda: client.ask(sim.Run()) == stands, "the pause")
        assert client.ask(sim.Pause()) == sim.Error(0, "The simulator is not running.")
        assert isinstance(client.ask(sim.GetEntity(VEHICLE, 0)), sim.EntityGot)
        wait_until(lambda: tick(0.2) or client.ask(sim.GetEntity(VEHICLE, 0)) == UNKNOWN, "the state to grow old")
    finally:
        server.close()
