# SPDX-License-Identifier: Apache-2.0
"""What testbed_server makes of messages before it has anybody to talk to: pairs, attitudes, time, and who steers."""

import math
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image, Imu

from drone_bridge.protocols.testbed import AngleUnit, Constants, MotionParameters
from drone_bridge.servers.testbed.helm import Helm
from drone_bridge.servers.testbed.outputs import CommandOutputs
from drone_bridge.servers.testbed.senses import ATTITUDE_PATIENCE_S, Senses
from drone_bridge.servers.testbed.vehicle import RosDrone
from drone_bridge.translate import testbed as translate
from drone_bridge.translate.images import rgb8_pixels, set_data
from drone_bridge.translate.time import time_from_seconds
from drone_bridge.vehicle_side.testbed.modelled_flight import FlightLimits, ModelledFlight

LONG_S = 1.0
CONSTANTS = Constants(120.0, 90.0, 2, 1, 0.25, 1.0, 9.8125, 0.25, 25.0, 720.0, 720.0, 720.0)


def image(stamp_s, marker=0, encoding="rgb8", width=2, height=1, step=None, data=None):
    step = step or 3 * width
    message = Image(width=width, height=height, encoding=encoding, step=step)
    message.header.stamp = time_from_seconds(stamp_s)
    set_data(message, bytes([marker]) * (step * height) if data is None else data)
    return message


def imu(stamp_s, **orientation):
    message = Imu()
    message.header.stamp = time_from_seconds(stamp_s)
    message.orientation.w = orientation.get("w", 1.0)
    return message


class Told:
    """Senses that have been told things, and the news that came of it."""

    def __init__(self, depth=4, *, keeps_order=False, is_mono=False):
        self.news = 0
        self.senses = Senses(depth, keeps_order=keeps_order, is_mono=is_mono, on_news=self._hear)

    def _hear(self):
        self.news += 1

    def pair(self, stamp_s, now_s=0.0, marker=0):
        self.senses.saw("left", image(stamp_s, marker), now_s)
        self.senses.saw("right", image(stamp_s, marker + 1), now_s)

    def felt(self, stamp_s, now_s=0.0):
        self.senses.felt(imu(stamp_s), now_s)

    def take(self, now_s=0.0):
        return self.senses.take(now_s, LONG_S)


def test_a_pair_needs_both_sides_of_the_same_stamp_and_an_attitude():
    told = Told()
    told.senses.saw("left", image(1.0), 0.0)
    told.senses.saw("right", image(1.5), 0.0)
    told.felt(1.5)
    assert told.take() is None
    told.senses.saw("right", image(1.0), 0.0)
    assert told.take().stamp == time_from_seconds(1.0)
    assert told.take() is None


def test_the_attitude_of_the_same_stamp_is_waited_for_and_brings_the_news():
    told = Told()
    told.felt(0.9)
    told.pair(1.0)
    assert (told.take(), told.news) == (None, 0)
    told.felt(1.0)
    assert told.news == 1
    assert told.take().attitude.header.stamp == time_from_seconds(1.0)


def test_a_slow_attitude_is_waited_for_but_not_for_long():
    told = Told()
    told.felt(0.9)
    told.pair(1.0, now_s=10.0)
    assert told.take(now_s=10.0 + ATTITUDE_PATIENCE_S / 2) is None
    assert told.take(now_s=10.0 + 2 * ATTITUDE_PATIENCE_S).attitude.header.stamp == time_from_seconds(0.9)


def test_an_attitude_that_is_too_old_is_none():
    told = Told()
    told.felt(1.0)
    told.pair(1.0 + 2 * LONG_S)
    assert told.take(now_s=ATTITUDE_PATIENCE_S) is None


def test_the_nearest_attitude_is_taken():
    told = Told()
    for stamp_s in (0.9, 0.96, 1.01, 1.1):
        told.felt(stamp_s)
    told.pair(1.0)
    assert told.take().attitude.header.stamp == time_from_seconds(1.01)


def test_latest_takes_the_newest_and_counts_the_rest():
    told = Told()
    for number in range(10):
        told.pair(1.0 + number)
        told.felt(1.0 + number)
    assert told.take().stamp == time_from_seconds(10.0)
    assert told.senses.dropped == 9
    assert told.take() is None


def test_latest_takes_what_is_whole_and_leaves_what_still_waits():
    told = Told()
    told.pair(1.0)
    told.felt(1.0)
    told.pair(2.0)
    assert told.take().stamp == time_from_seconds(1.0)
    assert told.senses.dropped == 0
    told.felt(2.0)
    assert told.take().stamp == time_from_seconds(2.0)


def test_in_order_none_is_left_out_until_there_is_no_room():
    told = Told(depth=3, keeps_order=True)
    for number in range(5):
        told.pair(1.0 + number)
        told.felt(1.0 + number)
    assert [told.take().stamp.sec for _ in range(3)] == [3, 4, 5]
    assert told.senses.dropped == 2


@pytest.mark.parametrize("keeps_order", [True, False])
def test_what_is_old_is_never_given_as_new(keeps_order):
    told = Told(keeps_order=keeps_order)
    told.pair(1.0, now_s=10.0)
    told.felt(1.0)
    assert told.take(now_s=10.0 + 2 * LONG_S) is None
    assert told.senses.dropped == 1


def test_when_time_runs_back_what_came_before_is_forgotten():
    told = Told()
    told.felt(5.0)
    told.pair(5.0)
    told.pair(0.0)
    assert told.take() is None  # the attitude is of the simulation before
    told.felt(0.0)
    taken = told.take()
    assert (taken.stamp, taken.attitude.header.stamp) == (Time(), Time())


def test_an_attitude_of_the_simulation_before_is_none_of_the_new_one():
    told = Told()
    told.felt(0.5)
    told.pair(0.5)
    told.felt(1.0)
    told.pair(1.0)
    told.take()
    told.pair(0.5)
    assert told.take() is None
    told.felt(0.5)
    assert told.take().stamp == time_from_seconds(0.5)


def test_images_without_their_other_side_are_not_kept_for_ever():
    told = Told()
    for number in range(100):
        told.senses.saw("left", image(float(number)), 0.0)
    assert told.senses.unmatched == 92


def test_one_camera_is_both_sides():
    told = Told(is_mono=True)
    told.felt(1.0)
    told.senses.saw("left", image(1.0), 0.0)
    taken = told.take()
    assert taken.left is taken.right


def test_what_is_missing_is_named():
    told = Told()
    assert told.senses.missing(10.0, LONG_S) == "left and right and attitude"
    told.pair(1.0, now_s=10.0)
    assert told.senses.missing(10.5, LONG_S) == "attitude"
    told.felt(1.0, now_s=10.0)
    assert told.senses.missing(10.5, LONG_S) == ""
    assert told.senses.missing(12.0, LONG_S) == "left and right and attitude"


def test_stamps_that_do_not_match_are_told():
    told = Told()
    told.senses.saw("left", image(1.0), 10.0)
    told.senses.saw("right", image(1.1), 10.0)
    told.felt(1.0, now_s=10.0)
    assert told.senses.missing(10.5, LONG_S) == ""
    assert told.senses.mismatch(10.5, LONG_S) == "no two images of left and right have the same stamp"
    told.pair(500.0, now_s=10.6)
    assert told.senses.take(11.0, LONG_S) is None
    assert told.senses.mismatch(11.0, LONG_S) == (
        f"the stamps of the images are more than {LONG_S:g} s away from those of the attitude"
    )
    told.felt(500.0, now_s=11.0)
    assert told.senses.take(11.0, LONG_S)
    assert told.senses.mismatch(11.0, LONG_S) == ""


# Pixels.

RED_BLUE = bytes([255, 0, 1, 2, 3, 254])


@pytest.mark.parametrize(
    ("encoding", "step", "data", "expected"),
    [
        ("rgb8", 6, RED_BLUE, RED_BLUE),
        ("rgb8", 8, RED_BLUE + b"..", RED_BLUE),
        ("bgr8", 6, RED_BLUE, bytes([1, 0, 255, 254, 3, 2])),
        ("rgba8", 8, bytes([1, 2, 3, 9, 4, 5, 6, 9]), bytes([1, 2, 3, 4, 5, 6])),
        ("bgra8", 8, bytes([1, 2, 3, 9, 4, 5, 6, 9]), bytes([3, 2, 1, 6, 5, 4])),
        ("mono8", 2, bytes([7, 8]), bytes([7, 7, 7, 8, 8, 8])),
    ],
)
def test_pixels_become_red_green_blue(encoding, step, data, expected):
    assert bytes(rgb8_pixels(image(0.0, encoding=encoding, step=step, data=data))) == expected


def test_rgb8_is_not_copied():
    message = image(0.0)
    assert rgb8_pixels(message) is message.data


@pytest.mark.parametrize("changes", [{"encoding": "16UC1"}, {"encoding": "yuv422"}, {"data": b"12345"}, {"step": 5}])
def test_other_images_are_refused_with_a_sentence(changes):
    with pytest.raises(ValueError, match=r"has to be one of|says to be"):
        rgb8_pixels(image(0.0, **changes))


# The drone.


class Flown:
    """A drone in ROS that has constants."""

    def __init__(self, *, stamps_are_simulated=False):
        self.told = Told(keeps_order=True, depth=20)
        self.commands, self.velocities, self.refused = [], [], []
        self.drone = RosDrone(
            self.told.senses,
            AngleUnit.DEGREES,
            stamps_are_simulated=stamps_are_simulated,
            now_s=lambda: 0.0,
            longest_s=lambda: LONG_S,
            command=lambda command, stamp: self.commands.append((command, stamp)),
            follow=self.velocities.append,
            refuse=self.refused.append,
        )
        self.properties = translate.drone_properties(CONSTANTS, AngleUnit.DEGREES)
        self.drone.learn(self.properties)

    def times(self, *stamps_s):
        for stamp_s in stamps_s:
            self.told.felt(stamp_s)
            self.told.pair(stamp_s)
            yield self.drone.sense().time


def test_time_counts_from_the_first_frame():
    assert list(Flown().times(1000.0, 1000.5, 1002.0)) == [0.0, 0.5, 2.0]


def test_simulated_stamps_are_the_time():
    assert list(Flown(stamps_are_simulated=True).times(0.25, 0.5, 2.0)) == [0.25, 0.5, 2.0]


@pytest.mark.parametrize("stamps_are_simulated", [True, False])
def test_when_time_runs_back_a_new_simulation_begins(stamps_are_simulated):
    flown = Flown(stamps_are_simulated=stamps_are_simulated)
    assert list(flown.times(0.0, 5.0, 0.0, 0.5)) == [0.0, 5.0, 0.0, 0.5]
    assert list(flown.times(0.25, 1.0)) == [0.0, 0.75]  # a step back to anything but 0 is told as the same


def test_the_next_autopilot_gets_simulated_time_as_it_is():
    flown = Flown(stamps_are_simulated=True)
    assert list(flown.times(3.0, 4.0)) == [3.0, 4.0]
    flown.drone.begin()
    assert list(flown.times(1.0, 2.0)) == [1.0, 2.0]  # the simulation has begun anew meanwhile


def test_properties_that_come_again_begin_a_new_simulation():
    flown = Flown()
    assert list(flown.times(10.0, 11.0)) == [0.0, 1.0]
    flown.drone.learn(flown.properties)
    assert list(flown.times(12.0, 13.0)) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [("image_width", 0, "width is 0"), ("mass", math.nan, "weight is nan"), ("max_thrust", 1e300, "does not fit")],
)
def test_properties_that_no_autopilot_would_take_are_refused_with_a_sentence(name, value, sentence):
    flown = Flown()
    known = flown.drone.constants
    setattr(flown.properties, name, value)
    with pytest.raises(ValueError, match=sentence):
        flown.drone.learn(flown.properties)
    assert flown.drone.constants == known


def test_a_command_bears_the_stamp_of_its_frame_and_is_limited():
    flown = Flown()
    list(flown.times(3.5))
    flown.drone.fly(MotionParameters(0.0, 0.0, 0.0, 1000.0))
    ((command, stamp),) = flown.commands
    assert (command.thrust, stamp, flown.drone.limited) == (CONSTANTS.max_thrust, time_from_seconds(3.5), 1)


def test_a_drone_that_follows_velocities_gets_those_of_the_model_and_no_rates():
    flown = Flown()
    limits = FlightLimits(max_speed=5.0, max_climb_speed=2.5, max_tilt=1.0, max_yaw_rate=4.0, max_lead=1.0)
    flown.drone.flight = ModelledFlight(CONSTANTS, AngleUnit.DEGREES, limits, 0.5)
    list(flown.times(1.0))
    flown.drone.fly(MotionParameters(0.0, 0.0, 90.0, 1000.0))
    list(flown.times(1.5))
    flown.drone.fly(MotionParameters(0.0, 0.0, 90.0, 1000.0))
    assert (flown.commands, flown.drone.limited) == ([], 2)
    assert flown.velocities[-1] == pytest.approx((0.0, 0.0, 2.5, math.pi / 2))
    flown.drone.begin()
    assert flown.drone.flight is None


def test_where_there_is_no_camera_the_picture_is_black():
    black = Flown().drone.nothing_seen(time_from_seconds(1.5))
    assert (black.width, black.height, black.header.stamp) == (2, 1, time_from_seconds(1.5))
    assert bytes(rgb8_pixels(black)) == bytes(6)


def test_a_frame_of_another_size_is_refused_with_a_sentence():
    flown = Flown()
    flown.told.felt(1.0)
    for side in ("left", "right"):
        flown.told.senses.saw(side, image(1.0, width=4), 0.0)
    assert flown.drone.sense() is None
    assert flown.refused == ["the left image has 4 x 1 pixels, and the drone's properties say 2 x 1."]


# Who steers.


class Steered:
    """A vehicle that remembers what it was told."""

    def __init__(self):
        self.told = []
        self.helm = Helm(lambda: self.told.append("neutral"))

    def steer(self, now_s):
        self.helm.steer(lambda: self.told.append("command"), now_s)


def test_an_operator_that_is_not_heard_leaves_one_neutral_command():
    vehicle = Steered()
    assert not vehicle.helm.watch(100.0, 0.5)  # nobody has steered yet
    vehicle.steer(10.0)
    assert not vehicle.helm.watch(10.4, 0.5)
    assert vehicle.helm.watch(10.5, 0.5)
    assert not vehicle.helm.watch(20.0, 0.5)
    vehicle.helm.let_go()
    assert vehicle.told == ["command", "neutral"]
    vehicle.steer(30.0)
    vehicle.helm.let_go()
    vehicle.helm.let_go()
    assert vehicle.told == ["command", "neutral", "command", "neutral"]


class Takers:
    """A node that knows who takes what."""

    def __init__(self, **takers):
        self.takers = takers
        self.parameters = {"command_output": takers.pop("choice", "auto")}

    def resolve_topic_name(self, topic):
        return f"/{topic}"

    def make_publisher(self, *_):
        return None

    def get_subscriptions_info_by_topic(self, topic):
        return [SimpleNamespace(node_name=name) for name in self.takers.get(topic[1:], [])]


def looked(is_flying=False, times=2, outputs=None, **takers):
    """What is published by outputs that have looked at these so often."""
    node = Takers(**takers)
    outputs = outputs or CommandOutputs(node, "base_link")
    outputs._node = node
    for _ in range(times):
        outputs.look(is_flying=is_flying)
    return outputs


@pytest.mark.parametrize(
    ("takers", "published"),
    [
        ({}, "cmd_rates"),
        ({"cmd_vel": ["robot_bridge"]}, "cmd_vel"),
        ({"cmd_vel": ["testbed_bridge"], "cmd_rates": ["testbed_bridge"]}, "cmd_rates"),
        ({"cmd_vel": ["robot_bridge", "recorder"], "cmd_rates": ["recorder", "_ros2cli_7"]}, "cmd_vel"),
        ({"cmd_vel": ["robot_bridge"], "cmd_rates": ["_NODE_NAME_UNKNOWN_"]}, "cmd_rates"),
        ({"cmd_vel": ["robot_bridge"], "choice": "cmd_rates"}, "cmd_rates"),
        ({"cmd_rates": ["testbed_bridge"], "choice": "cmd_vel"}, "cmd_vel"),
    ],
)
def test_what_is_published_is_what_somebody_takes(takers, published):
    assert looked(**takers).wanted == published


def test_what_is_taken_has_to_be_seen_twice_and_goes_on_in_flight():
    seen = looked(cmd_vel=["drone"], times=1)
    assert seen.wanted == "cmd_rates"
    assert looked(cmd_vel=["drone"], times=1, outputs=seen).wanted == "cmd_vel"
    both = {"cmd_vel": ["drone"], "cmd_rates": ["rqt"]}
    assert looked(is_flying=True, outputs=seen, **both).wanted == "cmd_vel"
    assert looked(is_flying=True, outputs=seen, cmd_rates=["drone"]).wanted == "cmd_rates"
    assert looked(is_flying=True, outputs=seen).wanted == "cmd_rates"
