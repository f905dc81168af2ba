# SPDX-License-Identifier: Apache-2.0
"""Parts of testbed_server's session: synchronized frames, time, levelling, command topic."""

import math
import weakref
from functools import partial
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image, Imu

from drone_bridge.msg import DroneProperties
from drone_bridge.ros.commands.cmd_vel_type import followers
from drone_bridge.ros.time import nanoseconds_of, time_from_seconds
from drone_bridge.ros.topics.images import rgb8_pixels, set_data
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed import units
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout, Constants, SensorFrame
from drone_bridge.testbed.vehicle.device.modelled_flight import ModelledFlight
from drone_bridge.testbed.vehicle.server.node import TestbedServer, read_pixels
from drone_bridge.testbed.vehicle.server.properties import read_properties
from drone_bridge.testbed.vehicle.session.framed_drone import FramedDrone
from drone_bridge.testbed.vehicle.session.frames import ATTITUDE_TIMEOUT_S, FrameSynchronizer
from drone_bridge.testbed.vehicle.session.levelling import Levelling
from drone_bridge.testbed.vehicle.session.output_choice import RATES, VELOCITY, OutputChoice

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


class Picture:
    """Stand-in for an image that shows whether it is kept."""


class Inputs:
    """FrameSynchronizer with messages."""

    def __init__(self, depth=4, *, keeps_order=False, is_mono=False, tolerance_s=0.0):
        self.synchronizer = FrameSynchronizer(depth, keeps_order=keeps_order, is_mono=is_mono, tolerance_s=tolerance_s)

    def add_image(self, side, stamp_s, now_s=0.0, marker=0, **changes):
        self.synchronizer.add(side, round(stamp_s * 1e9), image(stamp_s, marker, **changes), now_s)
        self.synchronizer.process()

    def pair(self, stamp_s, now_s=0.0, marker=0, **changes):
        self.add_image("left", stamp_s, now_s, marker, **changes)
        self.add_image("right", stamp_s, now_s, marker + 1, **changes)

    def complete(self, stamp_s, **changes):
        """Add all parts of a frame."""
        self.add_attitude(stamp_s)
        self.pair(stamp_s, **changes)

    def add_attitude(self, stamp_s):
        self.synchronizer.add("attitude", round(stamp_s * 1e9), imu(stamp_s), 0.0)

    def take(self, now_s=0.0):
        return self.synchronizer.take(now_s, LONG_S)


@pytest.fixture
def inputs():
    return Inputs()


def stamp_s(frame):
    return frame.stamp_ns / 1e9


def test_a_pair_needs_both_sides_of_the_same_stamp_and_an_attitude(inputs):
    inputs.add_image("left", 1.0)
    inputs.add_image("right", 1.5)
    inputs.add_attitude(1.5)
    assert inputs.take() is None
    inputs.add_image("right", 1.0)
    assert stamp_s(inputs.take()) == 1.0
    assert inputs.take() is None


@pytest.mark.parametrize(("tolerance_s", "frames"), [(0.0, 0), (0.005, 0), (0.015, 30)])
def test_two_cameras_that_run_freely_make_pairs_within_the_tolerance(tolerance_s, frames):
    inputs = Inputs(tolerance_s=tolerance_s)
    stamps_s = []
    for number in range(30):
        at_s = number / 30
        inputs.add_image("left", 1.0 + at_s)
        inputs.add_image("right", 1.01 + at_s)
        inputs.add_attitude(1.01 + at_s)
        if frame := inputs.take():
            stamps_s.append(frame.stamp_ns)
            assert (nanoseconds_of(frame.left.header.stamp), frame.stamp_ns) == 2 * (round((1.0 + at_s) * 1e9),)
    assert len(stamps_s) == frames


def test_free_running_cameras_pair_after_two_equal_stamps_by_chance():
    inputs = Inputs(tolerance_s=0.015)
    for right_s in (1.0, 1.11):
        inputs.add_image("left", round(right_s, 1))
        inputs.add_image("right", right_s)
        inputs.add_attitude(1.2)
        assert inputs.take()


def test_a_pair_waits_for_the_attitude_of_its_stamp(inputs):
    inputs.add_attitude(0.9)
    inputs.pair(1.0)
    assert inputs.take() is None
    inputs.add_attitude(1.0)
    assert inputs.take().attitude.header.stamp == time_from_seconds(1.0)


def test_waiting_for_a_slow_attitude_times_out(inputs):
    inputs.add_attitude(0.9)
    inputs.pair(1.0, now_s=10.0)
    assert inputs.take(now_s=10.0 + ATTITUDE_TIMEOUT_S / 2) is None
    assert inputs.take(now_s=10.0 + 2 * ATTITUDE_TIMEOUT_S).attitude.header.stamp == time_from_seconds(0.9)


def test_a_stale_attitude_is_not_used(inputs):
    inputs.add_attitude(1.0)
    inputs.pair(1.0 + 2 * LONG_S)
    assert inputs.take(now_s=ATTITUDE_TIMEOUT_S) is None


def test_the_nearest_attitude_is_taken(inputs):
    for stamp_s in (0.9, 0.96, 1.01, 1.1):
        inputs.add_attitude(stamp_s)
    inputs.pair(1.0)
    assert inputs.take().attitude.header.stamp == time_from_seconds(1.01)


def test_latest_takes_the_newest_and_counts_the_rest(inputs):
    for number in range(10):
        inputs.complete(1.0 + number)
    assert stamp_s(inputs.take()) == 10.0
    assert inputs.synchronizer.dropped == 9
    assert inputs.take() is None


def test_in_order_all_frames_are_kept_up_to_a_limit():
    inputs = Inputs(depth=3, keeps_order=True)
    for number in range(5):
        inputs.complete(1.0 + number)
    assert [stamp_s(inputs.take()) for _ in range(3)] == [3.0, 4.0, 5.0]
    assert inputs.synchronizer.dropped == 2


@pytest.mark.parametrize("keeps_order", [True, False])
def test_stale_data_is_never_given_as_new(keeps_order):
    inputs = Inputs(keeps_order=keeps_order)
    inputs.pair(1.0, now_s=10.0)
    inputs.add_attitude(1.0)
    assert inputs.take(now_s=10.0 + 2 * LONG_S) is None
    assert inputs.synchronizer.dropped == 1


def test_when_time_goes_back_earlier_messages_are_discarded(inputs):
    inputs.complete(5.0)
    inputs.pair(0.0)
    assert inputs.take() is None  # the attitude belongs to the previous simulation
    inputs.add_attitude(0.0)
    taken = inputs.take()
    assert (taken.stamp_ns, taken.attitude.header.stamp) == (0, Time())


def test_unpaired_images_are_dropped(inputs):
    for number in range(100):
        inputs.add_image("left", float(number))
        assert inputs.take() is None
    assert inputs.synchronizer.unmatched == 92


@pytest.mark.parametrize("depth", [1, 4, 16])
def test_of_unread_messages_the_newest_pairs_and_their_attitudes_are_kept(depth):
    synchronizer = FrameSynchronizer(depth, keeps_order=True, is_mono=False)
    references = []
    for number in range(100):
        for side in ("left", "right"):
            picture = Picture()
            references.append(weakref.ref(picture))
            synchronizer.add(side, number * 10**9, picture, 0.0)
        for part in range(5):
            synchronizer.add("attitude", number * 10**9 + part, imu(float(number)), 0.0)
    del picture
    assert sum(each() is not None for each in references) == 2 * depth
    taken = [synchronizer.take(0.0, LONG_S).stamp_ns // 10**9 for _ in range(depth)]
    assert taken == list(range(100 - depth, 100))


def test_pending_messages_are_handled_in_order_of_arrival():
    """Otherwise attitudes of a new simulation would be dropped with the earlier ones."""
    synchronizer = FrameSynchronizer(4, keeps_order=False, is_mono=True)
    for stamp_s in (50.0, 0.0):
        synchronizer.add("attitude", round(stamp_s * 1e9), imu(stamp_s), 0.0)
        synchronizer.add("left", round(stamp_s * 1e9), image(stamp_s), 0.0)
        synchronizer.add("attitude", round(stamp_s * 1e9) + 10**8, imu(stamp_s), 0.0)
    assert synchronizer.take(0.0, LONG_S).stamp_ns == 0


def test_one_camera_serves_both_sides():
    inputs = Inputs(is_mono=True)
    inputs.add_attitude(1.0)
    inputs.add_image("left", 1.0)
    taken = inputs.take()
    assert taken.left is taken.right


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


@pytest.mark.parametrize("changes", [{"encoding": "16UC1"}, {"encoding": "yuv422"}, {"data": b"12345"}, {"step": 5}])
def test_other_images_are_refused_with_a_sentence(changes):
    with pytest.raises(ValueError, match=r"must be one of|claims to be"):
        rgb8_pixels(image(0.0, **changes))


# The drone.


class Flown:
    """ROS drone with constants."""

    def __init__(self, *, stamps_are_simulated=False):
        self.inputs = Inputs(keeps_order=True, depth=20)
        self.drone = FramedDrone(
            self.inputs.synchronizer,
            read_attitude=partial(translate.sensed, unit=AngleUnit.DEGREES),
            read_pixels=read_pixels,
            stamps_are_simulated=stamps_are_simulated,
        )
        self.drone.set_constants(CONSTANTS)

    def sense(self):
        """Next frame, with earlier refusals."""
        return self.drone.next_frame(0.0, LONG_S)

    def times(self, *stamps_s):
        for each in stamps_s:
            self.inputs.complete(each)
            frame, refused = self.sense()
            assert refused == []
            yield frame.time


def test_time_counts_from_the_first_frame():
    assert list(Flown().times(1000.0, 1000.5, 1002.0)) == [0.0, 0.5, 2.0]


@pytest.mark.parametrize("stamps_are_simulated", [True, False])
def test_when_time_runs_back_a_new_simulation_begins(stamps_are_simulated):
    flown = Flown(stamps_are_simulated=stamps_are_simulated)
    assert list(flown.times(0.0, 5.0, 0.0, 0.5)) == [0.0, 5.0, 0.0, 0.5]
    assert list(flown.times(0.25, 1.0)) == [0.0, 0.75]  # any step back restarts the time


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [("image_width", 0, "width is 0"), ("mass", math.nan, "weight is nan"), ("max_thrust", 1e300, "does not fit")],
)
def test_invalid_properties_are_refused_with_a_sentence(name, value, sentence):
    properties = DroneProperties(**units.properties(CONSTANTS, AngleUnit.DEGREES))
    assert read_properties(properties, AngleUnit.DEGREES).width == CONSTANTS.width
    setattr(properties, name, value)
    with pytest.raises(ValueError, match=sentence):
        read_properties(properties, AngleUnit.DEGREES)


def test_a_modelled_flight_uses_poses_if_published_and_otherwise_attitudes():
    flown = Flown()
    posed = SensorFrame(b"", b"", 0.0, 0.0, 0.0, 45.0, (7.0, 8.0, 9.0))
    flown.drone.locate(1.2, posed)
    flown.inputs.complete(1.0)
    assert flown.sense()[0].position is None  # as the wire must not have it
    flown.drone.flight = ModelledFlight(CONSTANTS, AngleUnit.DEGREES, AttitudeLayout.POSE, max_speed=5.0)
    flown.inputs.complete(1.5)
    assert flown.sense()[0].position == pytest.approx(posed.position)
    flown.inputs.complete(1.3 + 2 * LONG_S)
    assert flown.sense()[0].position is None  # stale


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"width": 4}, "the left image has 4 x 1 pixels"), ({"encoding": "16UC1"}, "the left image is '16UC1'")],
)
def test_only_an_unencodable_frame_is_refused_with_a_sentence(changes, sentence):
    flown = Flown()
    flown.inputs.complete(1.0, **changes)
    flown.inputs.complete(1.5)
    frame, (refused,) = flown.sense()
    assert refused.startswith(sentence)
    assert frame.time == 0.0


# Levelling.

HARDLY, SLIGHTLY, MUCH = math.radians(0.3), math.radians(2.0), math.radians(20.0)


@pytest.mark.parametrize(
    ("neutral_s", "tilt", "is_repeated"),
    [
        (0.1, MUCH, True),
        (100.0, MUCH, True),
        (0.1, SLIGHTLY, False),
        (1.5, SLIGHTLY, True),
        (3.0, SLIGHTLY, False),
        (1.5, HARDLY, False),
        (0.1, None, False),
        (None, MUCH, False),
    ],
)
def test_a_tilted_drone_is_levelled_for_a_hover(neutral_s, tilt, is_repeated):
    assert Levelling().update(neutral_s, tilt) == is_repeated


@pytest.mark.parametrize("tilt", [HARDLY, None])
def test_the_last_of_the_repeated_commands_turns_nothing(tilt):
    levelling = Levelling()
    assert levelling.update(0.5, MUCH)
    assert levelling.turns(SLIGHTLY)
    assert levelling.update(0.6, tilt)
    assert not levelling.turns(tilt)
    assert not levelling.update(0.7, tilt)


def test_the_first_neutral_command_turns_a_drone_that_is_much_tilted():
    assert Levelling().turns(MUCH)
    assert not Levelling().turns(SLIGHTLY)
    assert not Levelling().turns(None)


# Command topic.


@pytest.mark.parametrize(
    ("names", "are_followers"),
    [
        ([], False),
        (["robot_bridge"], True),
        (["recorder", "_ros2cli_7"], False),
        (["recorder", "robot_bridge"], True),
        (["_NODE_NAME_UNKNOWN_"], True),
        (["testbed_server"], False),
    ],
)
def test_observers_and_the_server_do_not_count_as_subscribers(names, are_followers):
    endpoints = [SimpleNamespace(node_name=name, node_namespace="/ns") for name in names]
    node = SimpleNamespace(
        get_name=lambda: "testbed_server",
        get_namespace=lambda: "/ns",
        resolve_topic_name="/ns/{}".format,
        get_subscriptions_info_by_topic=lambda topic: endpoints if topic == "/ns/cmd_vel" else [],
    )
    assert bool(followers(node, "cmd_vel")) == are_followers


BOTH = (RATES, VELOCITY)


def looked(*subscribed, is_flying=False, times=2, choice=None):
    """Choice after this many updates with these subscribers."""
    choice = choice or OutputChoice(BOTH)
    for _ in range(times):
        choice.update(subscribed, is_flying=is_flying)
    return choice


@pytest.mark.parametrize(
    ("allowed", "subscribed", "published"),
    [
        (BOTH, (), RATES),
        (BOTH, (VELOCITY,), VELOCITY),
        (BOTH, (VELOCITY, RATES), RATES),
        ((RATES,), (VELOCITY,), RATES),
        ((VELOCITY,), (RATES,), VELOCITY),
    ],
)
def test_the_commands_published_are_those_with_subscribers(allowed, subscribed, published):
    assert looked(*subscribed, choice=OutputChoice(allowed)).wanted == published


def test_a_subscriber_has_to_be_seen_twice_and_the_choice_holds_in_flight():
    seen = looked(VELOCITY, times=1)
    assert seen.wanted == RATES
    assert looked(VELOCITY, times=1, choice=seen).wanted == VELOCITY
    assert looked(VELOCITY, RATES, is_flying=True, choice=seen).wanted == VELOCITY
    assert looked(RATES, is_flying=True, choice=seen).wanted == RATES
    assert looked(is_flying=True, choice=seen).wanted == RATES
    assert seen.chosen == RATES  # the session switches


# Node.


class Loop:
    """Records posted work; a stall drops the part that is not kept."""

    def __init__(self):
        self.posted, self.kept = [], []

    def post(self, work, *, is_kept=False):
        (self.kept if is_kept else self.posted).append(work)
        return True


def test_the_session_is_called_once_for_all_messages_even_after_a_stall():
    server = TestbedServer.__new__(TestbedServer)
    server._is_waiting = False
    server._loop, steps = Loop(), []
    server._session = SimpleNamespace(has_link=True, step=lambda now_s: steps.append(now_s) or [])
    synchronizer = FrameSynchronizer(4, keeps_order=False, is_mono=True)
    server._drone = SimpleNamespace(frames=synchronizer)
    for turn in (1.0, 2.0):
        for number in range(100):
            server._take_image("left", image(float(number)))
        assert server._loop.posted == []
        (work,) = server._loop.kept
        server._loop.kept.clear()
        assert work(turn) == []
    assert steps == [1.0, 2.0]
    server._session.has_link = False
    server._take_image("left", image(200.0))
    assert server._loop.kept == []
