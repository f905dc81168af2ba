# SPDX-License-Identifier: Apache-2.0
"""Baseline for simulator_bridge: a minimal script between a simulator and ROS 2.

It requests the streams, unpacks the states with struct, converts them to ROS's axes and publishes them, and offers one
service. It does not check or count anything, and it publishes with or without subscribers.
"""

import argparse
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence

import rclpy
from builtin_interfaces.msg import Time
from filling import fill
from geometry_msgs.msg import PoseStamped, Quaternion, TransformStamped, TwistStamped
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu
from simulator_peer import ENTITIES
from simulator_topics import VEHICLE, name, pose_topic, twist_topic
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from drone_bridge.srv import SimulatorRequest

HEADER = struct.Struct(">BI")  # type, bytes of the body
ADDED = struct.Struct(">BI")  # type and ID
STATE = struct.Struct(">IBB3dB3dB3dB4dB3d")  # stream, number of attributes, and x, v, a, q, w, each with its ID
REASSURE = HEADER.pack(33, 0)
STEP_S = 0.01
GRAVITY = 9.81  # m/s^2
HALF_TURN = 0.5**0.5

Numbers = Sequence[float]


class Baseline:
    """Publishes states. Messages are created once and refilled."""

    def __init__(self, node: Node) -> None:
        self._odometry_publisher = node.create_publisher(Odometry, "odom", 10)
        self._imu_publisher = node.create_publisher(Imu, "imu/data", 10)
        self._tf_publisher = node.create_publisher(TFMessage, "/tf", 100)
        self._clock_publisher = node.create_publisher(Clock, "/clock", 1)
        entities = range(ENTITIES)
        self._pose_publishers = [node.create_publisher(PoseStamped, pose_topic(entity), 10) for entity in entities]
        self._twist_publishers = [node.create_publisher(TwistStamped, twist_topic(entity), 10) for entity in entities]
        world = Header(frame_id="odom")
        self._odometry = Odometry(header=world, child_frame_id="base_link")
        self._imu = Imu(header=Header(frame_id="base_link"))
        self._pose = PoseStamped(header=world)
        self._twists = [TwistStamped(header=Header(frame_id=name(entity))) for entity in entities]
        frames = ["base_link", *map(name, entities[1:])]
        self._transforms = [TransformStamped(header=Header(frame_id="odom"), child_frame_id=frame) for frame in frames]
        self._tf = TFMessage(transforms=self._transforms)
        self._steps = 0

    def take(self, entity: int, state: tuple[float, ...]) -> None:
        """Publish a state: the numbers of STATE."""
        _, _, _, x, y, z, _, *velocity, _, ax, ay, az, _, w, i, j, k, _, p, q, r = state
        now_ns = time.time_ns()
        stamp = Time(sec=now_ns // 1_000_000_000, nanosec=now_ns % 1_000_000_000)
        transform = self._transforms[entity]
        transform.header.stamp = stamp
        fill(transform.transform.translation, y, x, -z)
        fill_orientation(transform.transform.rotation, w, i, j, k)
        linear = turned_back((w, i, j, k), velocity)
        if entity == VEHICLE:
            odometry, imu = self._odometry, self._imu
            odometry.header.stamp = imu.header.stamp = stamp
            fill(odometry.pose.pose.position, y, x, -z)
            fill_orientation(odometry.pose.pose.orientation, w, i, j, k)
            fill(odometry.twist.twist.linear, *linear)
            fill(odometry.twist.twist.angular, p, -q, -r)
            publish(self._odometry_publisher, odometry)
            fill_orientation(imu.orientation, w, i, j, k)
            fill(imu.angular_velocity, p, -q, -r)
            fill(imu.linear_acceleration, *turned_back((w, i, j, k), (ax, ay, az - GRAVITY)))
            publish(self._imu_publisher, imu)
        else:
            pose, twist = self._pose, self._twists[entity]
            pose.header.stamp = twist.header.stamp = stamp
            fill(pose.pose.position, y, x, -z)
            fill_orientation(pose.pose.orientation, w, i, j, k)
            publish(self._pose_publishers[entity], pose)
            fill(twist.twist.linear, *linear)
            fill(twist.twist.angular, p, -q, -r)
            publish(self._twist_publishers[entity], twist)
        if entity == ENTITIES - 1:
            publish(self._tf_publisher, self._tf)
            self._steps += 1
            now_ns = round(self._steps * STEP_S * 1e9)
            publish(
                self._clock_publisher, Clock(clock=Time(sec=now_ns // 1_000_000_000, nanosec=now_ns % 1_000_000_000))
            )


def fill_orientation(quaternion: Quaternion, w: float, x: float, y: float, z: float) -> None:
    """Set an orientation in ROS's axes, of a body forward-right-down in a world north-east-down."""
    quaternion.x, quaternion.y = HALF_TURN * (x + y), HALF_TURN * (x - y)
    quaternion.z, quaternion.w = HALF_TURN * (w - z), HALF_TURN * (w + z)


def turned_back(orientation: Numbers, vector: Numbers) -> Numbers:
    """Rotate a vector from the world to the axes of a body with this orientation: x forward, y left, z up."""
    w, x, y, z = orientation
    a, b, c = vector
    d, e, f = 2 * (c * y - b * z), 2 * (a * z - c * x), 2 * (b * x - a * y)
    return a - w * d + f * y - e * z, -(b - w * e + d * z - f * x), -(c - w * f + e * x - d * y)


def messages(simulator: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield type and body of each message, until the simulator closes the connection."""
    buffer = b""
    while data := simulator.recv(65536):
        buffer += data
        start = 0
        while len(buffer) - start >= HEADER.size:
            kind, length = HEADER.unpack_from(buffer, start)
            end = start + HEADER.size + length
            if len(buffer) < end:
                break
            yield kind, buffer[start + HEADER.size : end]
            start = end
        buffer = buffer[start:]


def connect(port: int) -> socket.socket:
    """Return a connection to the simulator."""
    simulator = socket.create_connection(("127.0.0.1", port))
    simulator.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return simulator


def offer_reassure(node: Node, simulator: socket.socket) -> None:
    """Offer a service that requests an OK from the simulator, on a thread that ends with ROS."""

    def reassure(_: SimulatorRequest.Request, response: SimulatorRequest.Response) -> SimulatorRequest.Response:
        simulator.sendall(REASSURE)
        kind, _ = HEADER.unpack(simulator.recv(HEADER.size, socket.MSG_WAITALL))
        response.success = kind == 0
        return response

    node.create_service(SimulatorRequest, "simulator_bridge/reassure", reassure)
    spin_in_a_thread(node)


def main() -> int:
    """Publish until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("namespace")
    arguments = parser.parse_args()
    with ros(is_interrupted=True):
        node = rclpy.create_node("baseline", namespace=arguments.namespace)
        baseline = Baseline(node)
        offer_reassure(node, connect(arguments.port))
        with connect(arguments.port) as simulator:
            for entity in range(ENTITIES):
                simulator.sendall(HEADER.pack(14, 14) + struct.pack(">IIB5B", entity, 1, 5, *range(5)))
            entities: dict[int, int] = {}  # by stream
            for kind, body in messages(simulator):
                if kind == 129:
                    state = STATE.unpack(body)
                    baseline.take(entities[state[0]], state)
                else:
                    entities[ADDED.unpack(body)[1]] = len(entities)
        threading.Event().wait()  # for SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
