# SPDX-License-Identifier: Apache-2.0
"""What simulator_server makes of topics and requests is what simulator_bridge made them of."""

import math
import random

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TransformStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu

from drone_bridge.ros.message_template import MessageTemplate
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, CameraAttribute
from drone_bridge.simulator.device.world import RefusedError
from drone_bridge.simulator.server.entity_plans import read_plans
from drone_bridge.simulator.server.mirror import MirroredEntity, MirroredScene
from drone_bridge.simulator.server.sources import PairedSource
from drone_bridge.simulator.topics import calls, requests
from drone_bridge.simulator.topics import mirror as server
from drone_bridge.simulator.topics import translation as bridge
from drone_bridge.simulator.topics.translation import STREAMED, Axes, BodyToModel, Velocity

AXES = [Axes(), Axes(convert=False)]
SEEDS = range(20)


def random_vector(source):
    return tuple(source.uniform(-9, 9) for _ in range(3))


def random_rotation(source):
    numbers = [source.gauss(0, 1) for _ in range(4)]
    length = math.hypot(*numbers)
    return tuple(number / length for number in numbers)


def random_values(seed):
    source = random.Random(seed)
    x, v, a, w = (random_vector(source) for _ in range(4))
    q = random_rotation(source)
    return x, v, a, q if q[0] >= 0.0 else tuple(-part for part in q), w


def on_the_wire(state, axes):
    return [server.wire_value(state, True, attribute, axes) for attribute in STREAMED]


def filled(message, numbers):
    """Return the message as a subscriber gets it, with these numbers in its gaps."""
    return deserialize_message(MessageTemplate(message, *numbers).filled(*numbers.values()), type(message))


@pytest.mark.parametrize("axes", AXES)
def test_a_rotation_has_one_sign_on_the_wire_whichever_it_has_in_ros(axes):
    """Clients compute its angle as 2 acos(w)."""
    for q in ((1.0, 0.0, 0.0, 0.0), (0.5, 0.5, -0.5, 0.5)):
        for sign in (1.0, -1.0):
            values = (0.0,) * 3, (0.0,) * 3, (0.0,) * 3, tuple(sign * part for part in q), (0.0,) * 3
            state = bridge.entity_state(values, axes, BodyToModel())
            told = server.wire_value(state, True, Attribute.ORIENTATION, axes)
            assert told == pytest.approx(q)
            assert 2.0 * math.acos(told[0]) == pytest.approx(2.0 * math.acos(q[0]))


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("seed", SEEDS)
def test_odometry_and_imu_carry_all_attributes(axes, seed):
    values = random_values(seed)
    state = bridge.entity_state(values, axes, BodyToModel())
    odometry = filled(Odometry(), {"pose.pose": bridge.pose_numbers(state), "twist.twist": bridge.twist_numbers(state)})
    force = bridge.specific_force(state, axes.against_gravity(9.81))
    turning = {"orientation": state.orientation, "angular_velocity": state.angular_velocity}
    imu = filled(Imu(), {**turning, "linear_acceleration": force})
    mirrored = server.with_imu(server.state_from_odometry(odometry), imu, axes.against_gravity(9.81))
    for attribute, value, there in zip(STREAMED, on_the_wire(mirrored, axes), values, strict=True):
        assert value == pytest.approx(there, abs=1e-13), attribute


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("seed", SEEDS)
def test_pose_and_twist_carry_all_but_the_acceleration(axes, seed):
    values = random_values(seed)
    state = bridge.entity_state(values, axes, BodyToModel())
    pose = filled(PoseStamped(), {"pose": bridge.pose_numbers(state)})
    twist = filled(TwistStamped(), {"twist": bridge.twist_numbers(state)})
    x, v, a, q, w = on_the_wire(server.with_stamped_twist(server.state_from_pose(pose), twist), axes)
    assert [x, q, a] == [pytest.approx(values[0]), pytest.approx(values[3]), (0, 0, 0)]
    assert [v, w] == [pytest.approx(values[1]), pytest.approx(values[4])]
    transform = filled(TransformStamped(), {"transform": bridge.pose_numbers(state)})
    assert on_the_wire(server.state_from_transform(transform.transform), axes)[0] == pytest.approx(values[0])


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("seed", SEEDS)
def test_v_and_w_come_out_of_the_bridge_as_they_went_into_the_server(axes, seed):
    _, v, _, q, w = random_values(seed)
    orientation = axes.orientation(q)
    velocity = server.velocity_from_wire(server.WireVelocity(v, w), orientation, axes)
    twist = server.twist_from_velocity(velocity)
    taken, was_within = bridge.velocity_from_twist(twist, 1e3, 1e3)
    assert was_within
    sent = bridge.set_velocity(0, taken, orientation, axes)
    assert [request.attribute for request in sent] == [Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY]
    assert [request.value for request in sent] == [pytest.approx(v), pytest.approx(w)]


def test_a_vehicle_that_looks_north_and_is_to_go_east_goes_to_its_right():
    """Axes at one glance: north is a yaw of 90 degrees in ROS, and right is -y there; to turn right is about -z."""
    north = Axes().orientation((1.0, 0.0, 0.0, 0.0))
    velocity = server.velocity_from_wire(server.WireVelocity((0.0, 1.0, 0.0), (0.0, 0.0, 0.5)), north, Axes())
    assert velocity.linear == pytest.approx((0.0, -1.0, 0.0))
    assert velocity.angular == pytest.approx((0.0, 0.0, -0.5))


def test_clamped_velocities_keep_their_direction():
    fast = Velocity((3.0, 0.0, -4.0), (0.0, 0.0, 1e308))
    assert server.shortened(fast, 2.5, 1.0) == (pytest.approx((1.5, 0.0, -2.0)), pytest.approx((0.0, 0.0, 1.0)))
    assert server.shortened(fast, 5.0, 1e309) == fast


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_non_finite_numbers_and_invalid_rotations_are_refused(bad):
    odometry = Odometry()
    odometry.pose.pose.position.x = bad
    with pytest.raises(ValueError, match="finite"):
        server.state_from_odometry(odometry)
    odometry = Odometry()
    odometry.twist.twist.angular.z = bad
    with pytest.raises(ValueError, match="finite"):
        server.state_from_odometry(odometry)
    pose = PoseStamped()
    pose.pose.orientation.w = bad
    with pytest.raises(ValueError, match="length"):
        server.state_from_pose(pose)


# Requests, through the service and back.


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("attribute", list(Attribute))
def test_eset_comes_out_of_the_bridge_as_it_went_into_the_server(axes, attribute):
    source = random.Random(attribute)
    value = (
        True
        if attribute == Attribute.CORPOREAL
        else random_rotation(source)
        if attribute == Attribute.ORIENTATION
        else random_vector(source)
    )
    request, orientation = sim.SetEntity(3, attribute, value), axes.orientation(random_rotation(source))
    (sent,) = requests.set_entity(calls.set_state(request, orientation, axes), orientation, axes)
    assert (sent.id, sent.attribute) == (3, attribute)
    assert sent.value == pytest.approx(value)


@pytest.mark.parametrize("axes", AXES)
def test_eadd_comes_out_of_the_bridge_as_it_went_into_the_server(axes):
    source = random.Random(1)
    attributes = (sim.ExtendedAttribute("render", b"ball"), sim.ExtendedAttribute("raw", b"\xff\0"))
    request = sim.AddEntity(
        2.0, 0.3, (1.0, 2.0, 3.0), random_rotation(source), (4.0, 5.0, 6.0), random_rotation(source), False, attributes
    )
    sent, btom = requests.add_entity(calls.spawn(request, "ball", axes), axes)
    assert (sent.mass, sent.radius, sent.corporeal, sent.attributes) == (2.0, 0.3, False, attributes)
    for name in ("inertia", "body_to_model", "position", "orientation"):
        assert getattr(sent, name) == pytest.approx(getattr(request, name)), name
    assert btom.rotation == pytest.approx(request.body_to_model)


@pytest.mark.parametrize("axes", AXES)
def test_cameras_and_triggers_come_out_of_the_bridge_as_they_went_into_the_server(axes):
    source = random.Random(2)
    camera = sim.AddCamera(0, random_rotation(source), (0.1, 0.2, 0.3), 1.5, False)
    sent = requests.add_camera(requests.camera_plan(calls.add_camera(camera, "front", axes)), axes)
    assert (sent.entity, sent.focal_length, sent.enabled) == (0, 1.5, False)
    assert [sent.orientation, sent.position] == [pytest.approx(camera.orientation), pytest.approx(camera.position)]
    for attribute, value in (
        (CameraAttribute.ORIENTATION, random_rotation(source)),
        (CameraAttribute.POSITION, (1.0, 2.0, 3.0)),
        (CameraAttribute.FOCAL_LENGTH, 2.5),
        (CameraAttribute.ENABLED, True),
    ):
        asked = calls.set_camera(sim.SetCamera(4, attribute, value), axes)
        (change,) = requests.set_camera(asked, axes, BodyToModel())
        assert (change.id, change.attribute, change.value) == (4, attribute, pytest.approx(value))
    for trigger in (
        sim.CollisionTrigger(1, 2, -1.0),
        sim.SweepCollisionTrigger(1, 2),
        sim.BytecodeTrigger(b"\1\2"),
        sim.PathTrigger(1, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), 0.5),
    ):
        assert requests.trigger_plan(calls.add_trigger(trigger, "name", axes), axes).trigger == trigger
    assert requests.set_attribute(calls.set_attribute(sim.SetExtended(1, "key", b"text"))).data == b"text"


# Where states come from.


class Half:
    """A message with a header."""

    def __init__(self, name, second):
        self.name = name
        self.header = type("Header", (), {"stamp": Time(sec=second)})


def paired(told):
    return PairedSource(
        lambda state, other: state + other.name,
        lambda state, stamp, is_complete: told.append((state, is_complete)),
        lambda: 1.5,
    )


def test_halves_of_one_time_come_together_in_whatever_order():
    told = []
    source = paired(told)
    source.take_state("a", Time(sec=1))  # nobody knows yet that there is another half
    source.take_other(Half("A", 1))
    source.take_state("b", Time(sec=2))  # waits from now on
    assert told == [("a", False)]
    source.take_other(Half("B", 2))
    source.take_other(Half("C", 3))
    source.take_state("c", Time(sec=3))
    assert told[1:] == [("bB", True), ("cC", True)]


def test_states_that_outrun_their_other_halves_wait_for_them():
    told = []
    source = paired(told)
    source.take_other(Half("A", 1))
    for second, state in enumerate("abc", 1):
        source.take_state(state, Time(sec=second))
    assert told == [("aA", True)]
    source.take_other(Half("C", 3))  # so B will not come; what is nearest is better than nothing
    assert told == [("aA", True), ("bC", True), ("cC", True)]


def test_a_missing_half_is_not_waited_for_and_its_last_value_expires():
    told = []
    source = paired(told)
    source.take_other(Half("A", 1))
    for second in range(1, 21):
        source.take_state(f"{second} ", Time(sec=second))
    assert told == [("1 A", True), ("2 A", True), *((f"{second} ", False) for second in range(3, 21))]
    source.take_other(Half("B", 20))
    source.take_state("c", Time(sec=21))
    source.take_other(Half("C", 21))
    assert told[-1] == ("cC", True)


def test_lines_of_entities_name_their_topics():
    lines = ["", "3:Red Buoy render=red_buoy radius=0.15", "4 tf=gate", "5:boat odom=/boat/odom", "6 pose=/p"]
    with pytest.raises(ValueError, match="Buoy"):
        read_plans(lines)  # a name ends with the first space
    red, gate, boat, bare = read_plans([line.replace("Red ", "") for line in lines])
    assert (red.number, red.pose, red.twist) == (3, "entities/buoy/pose", "entities/buoy/twist")
    assert (red.render, red.radius) == ("red_buoy", 0.15)
    assert (gate.name, gate.tf, gate.pose) == ("entity_4", "gate", "")
    assert (boat.odom, bare.pose, bare.twist) == ("/boat/odom", "/p", "")


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["x:buoy"], "must be an ID"),
        (["1:a", "1:b"], "names 1 twice"),
        (["1 tf=a pose=b"], "more than one"),
        (["1 colour=red"], "allowed are pose"),
        (["1 radius=0"], "a positive number"),
    ],
)
def test_invalid_lines_are_refused(lines, error):
    with pytest.raises(ValueError, match=error):
        read_plans(lines)


def test_a_silent_entity_exists_without_a_state():
    now_s = 0.0
    scene = MirroredScene(Axes(), 0, lambda: now_s, lambda: 1.0)
    scene.add(0, MirroredEntity(has_source=True))
    assert scene.entities == [0]
    with pytest.raises(RefusedError, match=r"No entity with given ID\."):
        scene.attribute(0, Attribute.POSITION)
    scene.update(0, server.state_from_pose(PoseStamped()))
    assert scene.attribute(0, Attribute.POSITION) == (0, 0, 0)
    now_s = 1.1
    assert scene.is_current(0)  # as long as nobody looks
    scene.update_time()
    assert not scene.is_current(0)
    with pytest.raises(RefusedError, match=r"No entity with given ID\."):
        scene.position(0)
    scene.update(7, server.state_from_pose(PoseStamped()))  # it has gone meanwhile
    assert not scene.has_entity(7)
