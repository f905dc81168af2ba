# SPDX-License-Identifier: Apache-2.0
"""Use of odometry's covariances by an extended Kalman filter: unknown values must not be believed."""

import pytest
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from drone_bridge.motion.body_velocity import STILL
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.robot.bridge.parameters import PARAMETERS as ROBOT
from drone_bridge.ros.topics.covariances import AXES, covariance_from_diagonal
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.reckoned_odometry import ODOMETRY_COVARIANCES as DRONEGUI
from drone_bridge.ros.topics.wheel_odometry import wheel_odometry
from drone_bridge.simulator.topics import EXACT_COVARIANCES as SIMULATOR
from drone_bridge.telemetry.topics import ROVER_COVARIANCES as TELEMETRY
from drone_bridge.testbed.topics import ODOMETRY_COVARIANCES as TESTBED

WIDE = 1e3  # a standard deviation of 30 m, or of many turns: no weight compared to a measurement


def variances_read(covariance):
    """Return what robot_localization's filters use: no negative variance, and none below 1e-9 (ekf.cpp, `correct`).

    Unlike an Imu's, a first element of -1 in odometry does not make them leave the message alone.
    """
    return [max(abs(variance), 1e-9) for variance in covariance[:: AXES + 1]]


def read(message):
    """Return the variances of pose and twist that a filter reads from odometry."""
    return variances_read(message.pose.covariance), variances_read(message.twist.covariance)


def test_a_covariance_is_row_by_row():
    assert covariance_from_diagonal([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])[0:15] == [1.0, *[0.0] * 6, 2.0, *[0.0] * 6, 3.0]


@pytest.mark.parametrize(
    ("covariances", "pose", "twist"),  # components of x, y, z, roll, pitch, yaw on the wire, or derived
    [
        (TESTBED, [1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 1]),
        (DRONEGUI, [1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]),
        (SIMULATOR, [1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]),
        (TELEMETRY, [1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]),
    ],
    ids=["testbed", "dronegui", "simulator", "telemetry"],
)
def test_a_filter_trusts_only_what_the_wire_carries(covariances, pose, twist):
    message = Odometry()
    covariances.fill(message)
    assert_trusted(read(message), pose, twist)


def test_of_dead_reckoning_only_velocities_are_trusted():
    message = wheel_odometry(PlanarPose(), STILL, Time(), FrameNames())
    assert_trusted(read(message), [0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 1])


def assert_trusted(variances_of, pose, twist):
    for variances, told in zip(variances_of, (pose, twist), strict=True):
        assert [variance <= 1.0 for variance in variances] == [bool(axis) for axis in told]
        assert all(variance >= WIDE for variance, axis in zip(variances, told, strict=True) if not axis)


@pytest.mark.parametrize("value", [[1.0] * 5, [1.0] * 7, [-1.0, *[0.0] * 5], [float("nan")] * 6])
def test_an_invalid_diagonal_is_refused(value):
    (declaration,) = [one for one in ROBOT if one.name == "twist_covariance_diagonal"]
    assert "must be 6 finite, non-negative numbers" in declaration.problem_with(value, "")
    assert declaration.problem_with([0.0] * 6, "") is None


@pytest.mark.parametrize(("name", "value"), [("frame_prefix", "/d1/"), ("odom_frame", "/odom"), ("base_frame", "")])
def test_an_invalid_frame_name_is_refused(name, value):
    (declaration,) = [one for one in ROBOT if one.name == name]
    assert declaration.problem_with(value, "").startswith(f"{name} is ")
    assert declaration.problem_with("d1/", "") is None
