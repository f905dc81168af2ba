# SPDX-License-Identifier: Apache-2.0
"""Conversions of simulator_server are inverse to those of simulator_bridge."""

import math
import random

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry

from drone_bridge.ros.commands.velocity_messages import twist_from_velocity, velocity_from_twist
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.simulator import units
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.topics import SimulatorTranslation, entity_state, wire_state
from drone_bridge.simulator.vehicle.device.world import RequestRefusedError
from drone_bridge.simulator.vehicle.server.sources import PairedSource
from drone_bridge.simulator.vehicle.session.mirrored_scene import MirroredEntity, MirroredScene


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


def translation():
    return SimulatorTranslation(FrameNames())


def test_a_rotation_has_one_sign_on_the_wire_whichever_it_has_in_ros():
    """Clients compute its angle as 2 acos(w)."""
    for q in ((1.0, 0.0, 0.0, 0.0), (0.5, 0.5, -0.5, 0.5)):
        for sign in (1.0, -1.0):
            values = (0.0,) * 3, (0.0,) * 3, (0.0,) * 3, tuple(sign * part for part in q), (0.0,) * 3
            state = entity_state(values)
            told = wire_state(state)[Attribute.ORIENTATION]
            assert told == pytest.approx(q)
            assert 2.0 * math.acos(told[0]) == pytest.approx(2.0 * math.acos(q[0]))


@pytest.mark.parametrize("seed", range(5))
def test_v_and_w_pass_unchanged_through_server_and_bridge(seed):
    _, v, _, q, w = random_values(seed)
    velocity = velocity_from_twist(twist_from_velocity(units.velocity_from_wire(v, w, q)))
    sent = units.set_velocity(0, velocity, q)
    assert [request.attribute for request in sent] == [Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY]
    assert [request.value for request in sent] == [pytest.approx(v), pytest.approx(w)]


def test_a_vehicle_facing_north_moves_right_to_go_east():
    """In ROS, north is a yaw of 90 degrees, right is -y, and a right turn is about -z."""
    velocity = units.velocity_from_wire((0.0, 1.0, 0.0), (0.0, 0.0, 0.5), (1.0, 0.0, 0.0, 0.0))
    assert velocity.linear == pytest.approx((0.0, -1.0, 0.0))
    assert velocity.angular == pytest.approx((0.0, 0.0, -0.5))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_non_finite_numbers_and_invalid_rotations_are_refused(bad):
    odometry = Odometry()
    odometry.pose.pose.position.x = bad
    with pytest.raises(ValueError, match="finite"):
        translation().wire_odometry(odometry)
    odometry = Odometry()
    odometry.twist.twist.angular.z = bad
    with pytest.raises(ValueError, match="finite"):
        translation().wire_odometry(odometry)
    pose = PoseStamped()
    pose.pose.orientation.w = bad
    with pytest.raises(ValueError, match="length"):
        translation().wire_pose(pose)


# Sources of states.


class Half:
    """Return a message with a header."""

    def __init__(self, name, second):
        self.name = name
        self.header = type("Header", (), {"stamp": Time(sec=second)})


def paired(told):
    return PairedSource(
        lambda state, other: state + other.name,
        lambda state, stamp, is_complete: told.append((state, is_complete)),
        lambda: 1.5,
    )


def test_halves_with_one_stamp_are_paired_in_any_order():
    told = []
    source = paired(told)
    source.take_state("a", Time(sec=1))  # the other half has not been discovered
    source.take_other(Half("A", 1))
    source.take_state("b", Time(sec=2))  # waits from now on
    assert told == [("a", False)]
    source.take_other(Half("B", 2))
    source.take_other(Half("C", 3))
    source.take_state("c", Time(sec=3))
    assert told[1:] == [("bB", True), ("cC", True)]


def test_a_state_does_not_wait_for_a_lost_half_and_its_last_value_expires():
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


def test_a_silent_entity_exists_without_a_state():
    scene = MirroredScene(lambda: 1.0)
    scene.entities[0] = MirroredEntity(has_source=True)
    assert list(scene.entities) == [0]
    with pytest.raises(RequestRefusedError, match="unknown"):
        scene.attribute(0, Attribute.POSITION)
    at_rest = wire_state(entity_state(random_values(1)))
    scene.update(0, at_rest)
    assert scene.attribute(0, Attribute.POSITION) == at_rest[0]
    scene.now_s = 1.1
    assert not scene.is_current(0)
    with pytest.raises(RequestRefusedError, match="unknown"):
        scene.position(0)
    scene.update(7, at_rest)  # it has gone meanwhile
    assert 7 not in scene.entities
