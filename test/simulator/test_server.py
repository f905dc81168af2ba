# SPDX-License-Identifier: Apache-2.0
"""Process tests of simulator_server with topics only: odometry of a vehicle and of others."""

import contextlib

import pytest
from geometry_msgs.msg import PoseStamped, Twist
from nav_msgs.msg import Odometry
from processes import Process
from ros_session import repeating, wait_until
from rosgraph_msgs.msg import Clock
from simulator_client import SimulatorClient

from drone_bridge.ros.time import time_from_seconds
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

VEHICLE, BUOY = 0, 3
STATES = {VEHICLE: (0.0, 1.0, 0.0), BUOY: (2.0, 0.0, 0.0)}  # north, east, down


@contextlib.contextmanager
def server(**parameters):
    with Process.node("simulator_server", port=0, bridge="", command_timeout=30.0, **parameters) as process:
        client = SimulatorClient(int(process.wait_for_line(r"clients on .*:(\d+)")[1]))
        yield process, client
        client.close()


def place(client, entity):
    answer = client.ask(sim.GetEntity(entity, Attribute.POSITION))
    return answer.value if isinstance(answer, sim.EntityGot) else None


def test_states_come_from_topics_and_the_end_stops_the_vehicle(ros):
    commands = ros.subscribe(Twist, "cmd_vel")
    with server(entities=["3:buoy pose=/buoy/pose render=red_buoy radius=0.15"]) as (process, client):
        odometry = ros.publisher(Odometry, "odom", 10)
        poses, odom, pose = ros.publisher(PoseStamped, "buoy/pose", 10), Odometry(), PoseStamped()
        odom.pose.pose.position.x, pose.pose.position.y = 1.0, 2.0

        def publish(_):
            ros.publish_fresh(odometry, odom)
            poses.publish(pose)

        assert sorted(client.get(sim.ListEntities()).ids) == [VEHICLE, BUOY]
        with repeating(publish):
            wait_until(lambda: all(place(client, entity) == at for entity, at in STATES.items()), "all states")
            assert client.get(sim.GetExtended(BUOY, "render")).data == b"red_buoy"
            forward = sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.0, 0.5, 0.0))  # where it looks: east
            wait_until(lambda: client.get(forward) and len(commands), "the command", period_s=0.05)
            assert commands.wait().linear.x == pytest.approx(0.5)
            process.send()
            client.wait_for(sim.Completed)
            client.wait_until_closed()
            assert commands.wait(lambda twist: twist == Twist())
            assert process.wait() == 0


def test_the_age_of_states_is_in_simulated_time(ros):
    clock = ros.node.create_publisher(Clock, "/clock", 10)
    with server(use_sim_time=True, source_timeout=60.0) as (_, client):
        odometry = ros.publisher(Odometry, "odom", 10)
        with repeating(lambda number: clock.publish(Clock(clock=time_from_seconds(100.0)))):
            wait_until(lambda: odometry.publish(Odometry()) or place(client, VEHICLE), "a state", period_s=0.02)
        with repeating(lambda number: clock.publish(Clock(clock=time_from_seconds(200.0 + 100.0 * number)))):
            wait_until(lambda: place(client, VEHICLE) is None, "a stale state")
