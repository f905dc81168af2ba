# SPDX-License-Identifier: Apache-2.0
"""Translation of the simulator: frames, IMU, commands, services, and parameter lines."""

import math

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, Vector3, Wrench
from hypothesis import given
from hypothesis import strategies as st

from drone_bridge.motion import quaternions
from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.quaternions import euler_from_quaternion, rotated
from drone_bridge.msg import ExtendedAttribute
from drone_bridge.ros.topics.covariances import EXACT_VARIANCE
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.topic_names import topic_token
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator import topics, units
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.procedures import in_body
from drone_bridge.simulator.topics import SimulatorTranslation, services
from drone_bridge.simulator.topics.parameter_lines import read_cameras, read_entities, read_entity_lines, read_triggers
from drone_bridge.srv import AddCamera, AddTrigger, AddTurbulence, SetCamera, SetState, Spawn

NO_ROTATION = BodyToModel()
QUARTER = math.sqrt(0.5)
NORTH = (1.0, 0.0, 0.0, 0.0)  # on the wire: no rotation, the nose north and the belly down
EAST = (QUARTER, 0.0, 0.0, QUARTER)  # turned to the right by a quarter
NOSE_DOWN = (QUARTER, 0.0, -QUARTER, 0.0)
STILL = (0.0, 0.0, 0.0)
STAMP = Time(sec=7, nanosec=8)


def state(x=STILL, v=STILL, a=STILL, q=NORTH, w=STILL, body_to_model=NO_ROTATION):
    entities = Entities(0, {}, topic_token, ())
    entities.body_to_model[0] = body_to_model
    values = tuple(tuple(map(float, value)) for value in (x, v, a, q, w))
    return topics.entity_state(entities.model_state(0, values))


def near(*values):
    return pytest.approx(values, abs=1e-9)


def xyz(message):
    return message.x, message.y, message.z


def of_message(rotation):
    return quaternions.Quaternion(rotation.x, rotation.y, rotation.z, rotation.w)


def forward(q):
    return rotated(q, 1.0, 0.0, 0.0)


# Frames.


def test_north_is_y_east_is_x_and_down_is_minus_z():
    assert state(x=(1.0, 2.0, 3.0)).position == (2.0, 1.0, -3.0)
    assert state(v=(1.0, 2.0, 3.0)).velocity == (2.0, 1.0, -3.0)
    assert state(a=(1.0, 2.0, 3.0)).acceleration == (2.0, 1.0, -3.0)


def test_a_vehicle_facing_north_on_the_wire_faces_y_upright_in_ros():
    q = state(q=NORTH).orientation
    assert forward(q) == near(0, 1, 0)
    assert rotated(q, 0.0, 0.0, 1.0) == near(0, 0, 1)
    assert euler_from_quaternion(q) == near(0, 0, math.pi / 2)


unit_quaternions = (
    st.tuples(*[st.floats(-1, 1)] * 4)
    .filter(lambda q: math.hypot(*q) > 0.1)
    .map(lambda q: tuple(part / math.hypot(*q) for part in q))
)


@given(unit_quaternions, st.tuples(*[st.floats(-10, 10)] * 3))
def test_rotations_are_equivalent_in_both_frames(q, v):
    # A vector of the body, converted to the world on the wire's side and in ROS.
    w, x, y, z = q
    on_the_wire = rotated(quaternions.Quaternion(x, y, z, w), *v)
    assert rotated(units.orientation(q), *units.body(*v)) == near(*units.world(*on_the_wire))


# The model and the principal axes.


def test_model_points_north_with_rotated_principal_axes():
    built_in = BodyToModel(EAST)
    assert forward(state(q=EAST, body_to_model=built_in).orientation) == near(0, 1, 0)


@given(unit_quaternions, unit_quaternions)
def test_principal_axes_are_the_model_turned_by_btom(model, btom):
    rotation = BodyToModel(btom)
    there_and_back = rotation.model(rotation.body(model))
    sign = math.copysign(1.0, sum(a * b for a, b in zip(there_and_back, model, strict=True)))
    assert tuple(sign * part for part in there_and_back) == near(*model)  # -q is the same rotation


@pytest.mark.parametrize("q", [(0.0,) * 4, (2.0, 0.0, 0.0, 0.0), (math.nan, 0.0, 0.0, 1.0), (math.inf,) * 4])
def test_an_invalid_rotation_is_no_state(q):
    with pytest.raises(ValueError, match="must have 1"):
        state(q=q)
    with pytest.raises(ValueError, match="must have 1"):
        BodyToModel(q)


@pytest.mark.parametrize("field", ["x", "v", "a", "w"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_numbers_are_no_state(field, bad):
    with pytest.raises(ValueError, match="not finite"):
        state(**{field: (0.0, bad, 0.0)})


# Messages.


def test_odometry_has_the_position_in_the_world_and_velocities_in_the_body():
    # Facing east and moving east, which is forward.
    moving = state(x=(1, 2, 3), v=(0, 5, 0), q=EAST, w=(0, 0, 1))
    translation = SimulatorTranslation(FrameNames())
    odometry, transform = translation.odometry(moving, STAMP), translation.transform(moving, STAMP)
    assert (odometry.header.frame_id, odometry.child_frame_id) == ("odom", "base_link")
    assert (transform.header.frame_id, transform.child_frame_id) == ("odom", "base_link")
    assert odometry.header.stamp == transform.header.stamp == STAMP
    assert xyz(odometry.pose.pose.position) == xyz(transform.transform.translation) == (2, 1, -3)
    assert odometry.pose.pose.orientation == transform.transform.rotation
    assert forward(of_message(odometry.pose.pose.orientation)) == near(1, 0, 0)
    assert xyz(odometry.twist.twist.linear) == near(5, 0, 0)
    assert xyz(odometry.twist.twist.angular) == near(0, 0, -1)


def test_an_imu_without_a_known_heading_has_an_unknown_covariance():
    translation = SimulatorTranslation(FrameNames())
    for is_known, first in ((False, -1.0), (True, EXACT_VARIANCE)):
        translation.is_attitude_known = is_known
        imu = translation.imu(state(w=(0, 0, 1)), STAMP)
        assert (imu.orientation_covariance[0], imu.linear_acceleration_covariance[0]) == (first, first)
        assert (imu.header.frame_id, imu.header.stamp) == ("base_link", STAMP)
        assert xyz(imu.angular_velocity) == near(0, 0, -1)


def felt(**parts):
    return xyz(SimulatorTranslation(FrameNames()).imu(state(**parts), STAMP).linear_acceleration)


def test_an_imu_reads_gravity_upwards_at_rest_and_zero_in_free_fall():
    assert felt() == near(0, 0, 9.81)
    assert felt(a=(0, 0, 9.81)) == near(0, 0, 0)


def test_an_imu_reads_its_acceleration_and_gravity_in_the_body_frame():
    assert felt(a=(2, 0, 0)) == near(2, 0, 9.81)
    assert felt(q=NOSE_DOWN) == near(-9.81, 0, 0)


# Commands.


def twist(linear=STILL, angular=STILL):
    return Twist(
        linear=Vector3(x=linear[0], y=linear[1], z=linear[2]), angular=Vector3(x=angular[0], y=angular[1], z=angular[2])
    )


def test_forward_and_left_are_relative_to_the_vehicle():
    velocity = BodyVelocity(forward=1.0, turn=1.0)
    v, w = units.set_velocity(4, velocity, EAST)
    assert (v.id, v.attribute, v.value) == (4, sim.Attribute.VELOCITY, near(0, 1, 0))
    assert (w.id, w.attribute, w.value) == (4, sim.Attribute.ANGULAR_VELOCITY, near(0, 0, -1))


def test_clamped_velocities_keep_their_direction():
    fast = topics.within_maxima(BodyVelocity(60.0, 80.0, turn=3.0))
    assert (fast.linear, fast.angular) == (near(6, 8, 0), near(0, 0, 3))
    endless = topics.within_maxima(BodyVelocity(1.7e308, 1.7e308))
    assert endless.linear == (0.0, 0.0, 0.0)
    slow = BodyVelocity(3.0, 4.0)
    assert topics.within_maxima(slow) == slow


# Services.


def test_a_small_rotation_is_a_rotation():
    angle = 1e-6
    btom = BodyToModel((math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)))
    assert not btom.is_identity
    assert btom.body((1.0, 0.0, 0.0, 0.0))[3] == pytest.approx(angle / 2)
    assert btom.model((1.0, 0.0, 0.0, 0.0))[3] == pytest.approx(-angle / 2)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mass": 0.0}, "mass is 0"),
        ({"radius": math.nan}, "radius is nan"),
        ({"inertia": Vector3(x=1.0, y=0.0, z=1.0)}, "must be above 0"),
        ({"pose": Pose(position=Point(x=math.inf))}, "finite"),
        ({"pose": Pose(orientation=Quaternion(w=2.0))}, "length 2"),
        ({"attributes": [ExtendedAttribute(key="k", text="a", data=[1])]}, "both text and data"),
    ],
    ids=str,
)
def test_spawning_refuses_invalid_requests(change, error):
    with pytest.raises(ValueError, match=error):
        services.wire_add_entity(Spawn.Request(**change))


def test_a_velocity_in_the_own_frame_needs_an_orientation():
    request = SetState.Request(set_velocity=True, twist=twist((1.0, 0.0, 0.0)))
    with pytest.raises(ValueError, match="orientation is unknown"):
        list(services.wire_set_entity(request, None))
    (change,) = services.wire_set_entity(request, state(q=NORTH).orientation)
    assert change.value == near(1, 0, 0)


def test_cameras_are_set_in_the_principal_axes_where_required():
    request = SetCamera.Request(id=1, set_position=True, set_orientation=True)
    request.pose = Pose(position=Point(x=1.0, y=2.0, z=3.0), orientation=Quaternion(w=1.0))
    turned_right = BodyToModel((QUARTER, 0.0, 0.0, QUARTER))  # the principal axes point to the model's right
    changes = [in_body(change, turned_right) for change in services.wire_set_camera(request)]
    position, rotation = sorted(changes, key=lambda change: -change.attribute)
    assert position.value == near(-2, -1, -3)  # 2 m to the left of the model are behind
    assert rotation.value == near(QUARTER, 0, 0, -QUARTER)  # a forward camera faces left
    assert BodyToModel.between((1, 0, 0, 0), turned_right.rotation).rotation == near(*turned_right.rotation)


def test_entities_behind_a_camera_are_not_visible():
    translation = SimulatorTranslation(FrameNames())
    message = translation.camera_view(sim.CameraData(1, 0.5, -0.5, 0.0, -2.0), Time())
    assert (message.visible, message.x, message.y, message.depth) == (False, 0.5, -0.5, -2.0)
    assert translation.camera_view(sim.CameraData(1, 0.5, -0.5, 0.25, 2.0), Time()).visible


def test_triggers_are_placed_in_the_world():
    request = AddTrigger.Request(name="gate", type=3, entity_a=1, distance=0.5, start=Point(x=1.0, y=2.0, z=3.0))
    assert services.wire_trigger(request) == sim.PathTrigger(1, (2.0, 1.0, -3.0), STILL, 0.5)
    collision = AddTrigger.Request(type=0, entity_a=1, entity_b=2, distance=-1.0)
    assert services.wire_trigger(collision) == sim.CollisionTrigger(1, 2, -1.0)
    sweep = AddTrigger.Request(type=1, entity_a=1, entity_b=2)
    assert services.wire_trigger(sweep) == sim.SweepCollisionTrigger(1, 2)
    for bad in ({"type": 2}, {"type": 4}, {"type": 3}, {"type": 0, "distance": math.nan}):
        with pytest.raises(ValueError, match=r"\.$"):
            services.wire_trigger(AddTrigger.Request(**bad))


def test_turbulence_has_its_bounds_in_order_on_the_wire():
    request = AddTurbulence.Request(minimum_force_rate=1.0, maximum_force_rate=2.0)
    request.minimum = Wrench(force=Vector3(x=1.0, y=2.0, z=3.0), torque=Vector3(z=-1.0))
    request.maximum = Wrench(force=Vector3(x=4.0, y=5.0, z=6.0), torque=Vector3(z=1.0))
    turbulence = sim.Turbulence.decode(services.wire_add_turbulence(request).data)
    assert (turbulence.force_a, turbulence.force_b) == ((2.0, 1.0, -6.0), (5.0, 4.0, -3.0))
    assert (turbulence.torque_a, turbulence.torque_b) == ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0))
    assert (turbulence.force_rate_a, turbulence.force_rate_b) == (1.0, 2.0)
    with pytest.raises(ValueError, match="above the maximum"):
        services.wire_add_turbulence(AddTurbulence.Request(minimum=request.maximum))
    for rates in ({"minimum_force_rate": 11.0}, {"maximum_torque_rate": math.inf}, {"minimum_torque_rate": math.nan}):
        with pytest.raises(ValueError, match="ascending order"):
            services.wire_add_turbulence(AddTurbulence.Request(**rates))


@pytest.mark.parametrize(
    ("data", "text"), [(b"hello", "hello"), (b"", ""), (b"\xff", ""), (b"a\0b", ""), ("é".encode(), "é")]
)
def test_valid_utf_8_attributes_are_text(data, text):
    message = topics.attribute_message("k\udcff", data)
    assert (message.key, message.text, bytes(message.data)) == ("k\ufffd", text, data)


# Parameter lines.


def test_cameras_are_described_in_a_line():
    full, short = read_cameras(
        ["front entity=2 xyz=0.3,0,-1 rpy=0,0,1.5707963267948966 f=2 targets=3,4 period=5 enabled=false", "back", ""]
    )
    assert (full.name, full.entity_id, full.focal_length) == ("front", 2, 2.0)
    assert xyz(full.pose.position) == (0.3, 0.0, -1.0)
    assert (full.enabled, list(full.targets), full.period) == (False, [3, 4], 5)
    assert forward(of_message(full.pose.orientation)) == near(0, 1, 0)
    assert short == AddCamera.Request(name="back")
    assert services.wire_add_camera(short) == sim.AddCamera(0, NORTH, STILL, 1.0)


def test_triggers_are_described_in_a_line():
    near_, touch, gate = read_triggers(
        [
            "near collision a=0 b=3 distance=0.5",
            "touch sweep a=0 b=3",
            "gate path entity=0 start=0,0,-1 end=5,0,-1 distance=1",
        ]
    )
    assert (near_.name, touch.name, gate.name) == ("near", "touch", "gate")
    assert services.wire_trigger(near_) == sim.CollisionTrigger(0, 3, 0.5)
    assert services.wire_trigger(touch) == sim.SweepCollisionTrigger(0, 3)
    assert services.wire_trigger(gate) == sim.PathTrigger(0, (0.0, 0.0, 1.0), (0.0, 5.0, 1.0), 1.0)
    assert read_triggers(["near collision a=0 b=3"])[0].distance == -1.0


@pytest.mark.parametrize(
    ("read", "line", "error"),
    [
        (read_entities, "x:buoy", "'x' for the ID"),
        (read_entities, "-1", "'-1' for the ID"),
        (read_entities, "4294967296", "whole number"),
        (read_cameras, "front targets=a", "'a' for targets"),
        (read_cameras, "front xyz=1,2", "three numbers"),
        (read_cameras, "front xyz=1,2,nan", "finite"),
        (read_cameras, "front f=0", "focal length is 0.*'front f=0'"),
        (read_cameras, "front enabled=yes", "true or false"),
        (read_cameras, "front colour=red", "allowed: entity, xyz"),
        (read_cameras, "front entity", "each followed by ="),
        (read_triggers, "near", "collision, sweep or path"),
        (read_triggers, "near collision a=1", "lacks b"),
        (read_triggers, "gate path entity=0 start=0,0,0 end=1,0,0 distance=0", "above 0"),
    ],
)
def test_an_invalid_line_is_named(read, line, error):
    with pytest.raises(ValueError, match=error):
        read([line])


def test_an_entity_has_one_name():
    with pytest.raises(ValueError, match="repeats"):
        read_entities(["3:a", "3:b"])


def test_lines_of_entities_name_their_topics():
    lines = ["", "3:Red Buoy render=red_buoy radius=0.15", "5:boat odom=/boat/odom", "6 pose=/p"]
    with pytest.raises(ValueError, match="Buoy"):
        read_entity_lines(lines)  # a name ends with the first space
    red, boat, bare = read_entity_lines([line.replace("Red ", "") for line in lines])
    assert (red.number, red.pose, red.twist) == (3, "entities/buoy/pose", "entities/buoy/twist")
    assert (red.render, red.radius) == ("red_buoy", 0.15)
    assert (boat.odom, bare.name, bare.pose, bare.twist) == ("/boat/odom", "entity_6", "/p", "")


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["x:buoy"], "for the ID"),
        (["1:a", "1:b"], "names 1 twice"),
        (["1 odom=a pose=b"], "both odom and pose"),
        (["1 colour=red"], "allowed: pose"),
        (["1 radius=0"], "a positive number"),
    ],
)
def test_invalid_entities_of_the_server_are_refused(lines, error):
    with pytest.raises(ValueError, match=error):
        read_entity_lines(lines)


# Sensors of an underwater vehicle.


def test_depth_pressure_and_speed_over_ground_match_underwater_sensors():
    """10 m deep, with the nose east, moving east: forward."""
    translation, at = SimulatorTranslation(FrameNames("d1/")), state(x=(5.0, 6.0, 10.0), v=(0.0, 1.5, 0.0), q=EAST)
    depth = translation.depth(at, STAMP)
    assert (depth.header.frame_id, depth.pose.pose.position.z) == ("d1/odom", -10.0)
    variances = depth.pose.covariance[::7]
    assert variances[2] < 1.0 < min(variances[0], variances[1], *variances[3:])
    assert translation.fluid_pressure(at, STAMP).fluid_pressure == pytest.approx(101_325 + 100_518, abs=1.0)
    above = state(x=(0.0, 0.0, -3.0))
    assert translation.fluid_pressure(above, STAMP).fluid_pressure == 101_325
    velocity = translation.velocity(at, STAMP)
    assert velocity.header.frame_id == "d1/base_link"
    assert xyz(velocity.twist.twist.linear) == near(1.5, 0.0, 0.0)
    assert velocity.twist.covariance[0] < 1.0 < velocity.twist.covariance[35]


def test_no_covariance_of_the_imu_is_zero_which_means_unknown():
    translation = SimulatorTranslation(FrameNames())
    message = translation.imu(state(), STAMP)
    for covariance in (
        message.orientation_covariance,
        message.angular_velocity_covariance,
        message.linear_acceleration_covariance,
    ):
        assert min(covariance[0], covariance[4], covariance[8]) > 0.0
    translation.is_attitude_known = False
    message = translation.imu(state(), STAMP)
    assert message.orientation_covariance[0] == message.linear_acceleration_covariance[0] == -1.0
    translation.is_attitude_known = True
    assert translation.imu(state(), STAMP).orientation_covariance[0] > 0.0
