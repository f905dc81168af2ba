# SPDX-License-Identifier: Apache-2.0
"""Quadrotor in MuJoCo as a ROS vehicle that is independent of drone_bridge: cmd_vel in, odom out. See README.md.

python examples/mujoco_quadrotor/quadrotor.py --ros-args -r __ns:=/drone
"""

import contextlib
import math
import signal
import time
from pathlib import Path

import mujoco
import numpy as np
import rclpy
from geometry_msgs.msg import TransformStamped, Twist
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Imu
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage

MODEL = Path(__file__).with_name("quadrotor.xml")
RATE_HZ = 50.0  # of published messages
COMMAND_TIMEOUT_S = 0.5
VARIANCE = 1e-4  # of the exact pose and twist; not 0, which filters treat as certain
LONGEST_STEP_S = 1.0  # after a longer stall the process does not catch up
TAKE_OFF_M, SINK_RATE, CLIMB_RATE = 1.0, 0.4, 0.5  # m, m/s, m/s
ARM_M, YAW_MOMENT_M = 0.12, 0.016  # as in the model: position of a rotor along x and y, and its moment per thrust
# Gains: acceleration per velocity error, and natural frequency of the attitude, critically damped.
VELOCITY_GAIN, ATTITUDE_RATE = 3.0, 15.0  # 1/s, rad/s
MOST_ACCELERATION = 4.0  # m/s^2

# Total thrust, and moments about x, y, z, for thrusts of the rotors: front left, front right, back left, back right.
MIXED = np.array([[1, 1, 1, 1], [ARM_M, -ARM_M, ARM_M, -ARM_M], [-ARM_M, -ARM_M, ARM_M, ARM_M], [0, 0, 0, 0]], float)
MIXED[3] = YAW_MOMENT_M * np.array([1, -1, -1, 1])
UNMIXED = np.linalg.inv(MIXED)


class Flight:
    """Physics and onboard controller. World axes are x, y, z (up); velocities are in m/s and rad/s."""

    def __init__(self, height: float) -> None:
        """Start at a height above the ground, m: with the motors off at 0, otherwise hovering."""
        self.model = mujoco.MjModel.from_xml_path(str(MODEL))
        self.data = mujoco.MjData(self.model)
        self.data.qpos[2] += height
        mujoco.mj_forward(self.model, self.data)
        self.is_flying = height > 0.0
        self.height_wanted = math.nan  # of a takeoff
        self.is_landing = False
        self.yaw_wanted = 0.0

    @property
    def rotation(self) -> np.ndarray:
        return self.data.xmat[1].reshape(3, 3)

    def step(self, command: Twist) -> None:
        """Advance by the model's time step, with a commanded velocity in body axes."""
        yaw = math.atan2(self.rotation[1, 0], self.rotation[0, 0])
        cosine, sine = math.cos(yaw), math.sin(yaw)
        wanted = np.array(
            [
                cosine * command.linear.x - sine * command.linear.y,
                sine * command.linear.x + cosine * command.linear.y,
                self._climb_rate(command.linear.z),
            ]
        )
        self.yaw_wanted += command.angular.z * self.model.opt.timestep
        self.data.ctrl[:] = self._thrusts(wanted) if self.is_flying else 0.0
        mujoco.mj_step(self.model, self.data)

    def _climb_rate(self, commanded: float) -> float:
        if self.is_landing:
            if self.data.ncon:  # it touches something
                self.is_flying = self.is_landing = False
            return -SINK_RATE
        left = self.height_wanted - self.data.qpos[2]
        if math.isfinite(left):
            if left > 0.02:
                return min(CLIMB_RATE, 2.0 * left)
            self.height_wanted = math.nan
        return commanded

    def _thrusts(self, velocity: np.ndarray) -> np.ndarray:
        """Return the thrust of each rotor, N, for a velocity in world axes. A PD law controls the tilt."""
        mass, inertia = self.model.body_mass[1], self.model.body_inertia[1]
        missing = VELOCITY_GAIN * (velocity - self.data.qvel[:3])
        force = mass * (np.clip(missing, -MOST_ACCELERATION, MOST_ACCELERATION) - self.model.opt.gravity)
        up = force / np.linalg.norm(force)
        left = np.cross(up, [math.cos(self.yaw_wanted), math.sin(self.yaw_wanted), 0.0])
        left /= np.linalg.norm(left)
        aim = np.column_stack((np.cross(left, up), left, up))
        off = aim.T @ self.rotation - self.rotation.T @ aim
        error = 0.5 * np.array([off[2, 1], off[0, 2], off[1, 0]])
        moments = -inertia * (ATTITUDE_RATE**2 * error + 2 * ATTITUDE_RATE * self.data.qvel[3:6])
        return np.clip(UNMIXED @ [force @ self.rotation[:, 2], *moments], *self.model.actuator_ctrlrange[0])


class Quadrotor(Node):
    """Node with the topics and services of the vehicle."""

    def __init__(self) -> None:
        super().__init__("quadrotor")
        self._flight = Flight(self.declare_parameter("height", 0.0).value)
        self._command, self._commanded_s = Twist(), -math.inf
        self._stepped_s = time.monotonic()
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._odometry = self.create_publisher(Odometry, "odom", 10)
        self._imu = self.create_publisher(Imu, "imu/data", 10)
        self._tf = self.create_publisher(TFMessage, "/tf", 10)
        self._flying = self.create_publisher(Bool, "flying", latched)
        self._flying_told: bool | None = None
        self.create_subscription(Twist, "cmd_vel", self._on_command, 1)
        self.create_service(Trigger, "takeoff", self._take_off)
        self.create_service(Trigger, "land", self._land)
        self.create_timer(1 / RATE_HZ, self._advance)

    def _on_command(self, message: Twist) -> None:
        numbers = [getattr(part, axis) for part in (message.linear, message.angular) for axis in "xyz"]
        if all(map(math.isfinite, numbers)):
            self._command, self._commanded_s = message, time.monotonic()

    def _take_off(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = not self._flight.is_flying
        response.message = "It takes off." if response.success else "It flies already."
        if response.success:
            self._flight.is_flying, self._flight.is_landing = True, False
            self._flight.height_wanted = self._flight.data.qpos[2] + TAKE_OFF_M
        return response

    def _land(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._flight.is_landing = self._flight.is_flying
        response.success, response.message = True, "It lands." if self._flight.is_flying else "It has landed."
        return response

    def _advance(self) -> None:
        """Catch up with the time on the wall, then publish."""
        now_s = time.monotonic()
        self._stepped_s = max(self._stepped_s, now_s - LONGEST_STEP_S)
        command = self._command if now_s - self._commanded_s <= COMMAND_TIMEOUT_S else Twist()
        while self._stepped_s < now_s:
            self._flight.step(command)
            self._stepped_s += self._flight.model.opt.timestep
        self._publish()

    def _publish(self) -> None:
        data, prefix = self._flight.data, self.get_namespace().strip("/")
        odometry = Odometry(child_frame_id=f"{prefix}/base_link".strip("/"))
        odometry.header.stamp = self.get_clock().now().to_msg()
        odometry.header.frame_id = f"{prefix}/odom".strip("/")
        transform = TransformStamped(header=odometry.header, child_frame_id=odometry.child_frame_id)
        imu = Imu(header=odometry.header)
        imu.header.frame_id = odometry.child_frame_id
        odometry.pose.covariance[::7] = odometry.twist.covariance[::7] = np.full(6, VARIANCE)
        w, x, y, z = data.qpos[3:7].tolist()
        for rotation in (odometry.pose.pose.orientation, transform.transform.rotation, imu.orientation):
            rotation.w, rotation.x, rotation.y, rotation.z = w, x, y, z
        acceleration = self._flight.rotation.T @ (data.qacc[:3] - self._flight.model.opt.gravity)
        for vector, values in (
            (odometry.pose.pose.position, data.qpos[:3]),
            (transform.transform.translation, data.qpos[:3]),
            (odometry.twist.twist.linear, self._flight.rotation.T @ data.qvel[:3]),
            (odometry.twist.twist.angular, data.qvel[3:6]),
            (imu.angular_velocity, data.qvel[3:6]),
            (imu.linear_acceleration, acceleration),
        ):
            vector.x, vector.y, vector.z = values.tolist()
        self._odometry.publish(odometry)
        self._imu.publish(imu)
        self._tf.publish(TFMessage(transforms=[transform]))
        if self._flight.is_flying != self._flying_told:
            self._flying_told = self._flight.is_flying
            self._flying.publish(Bool(data=self._flying_told))


def main() -> None:
    """Fly until Ctrl-C or SIGTERM."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        rclpy.spin(Quadrotor())
    rclpy.shutdown()


if __name__ == "__main__":
    main()
