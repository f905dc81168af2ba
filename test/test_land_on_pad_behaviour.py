# SPDX-License-Identifier: Apache-2.0
"""drone_controller with the behaviour land_on_pad, as a process: the test plays the bridge, and waits for answers."""

import contextlib
import copy
import math

import pytest
from geometry_msgs.msg import PointStamped, Twist, TwistWithCovarianceStamped
from pad_flight import BridgePilot
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, Image, Imu
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from drone_bridge.controllers.land_on_pad.pilot import LandParameters
from drone_bridge.motion.tilt_control import Velocity
from drone_bridge.msg import ControllerState, LandingPad
from drone_bridge.ros.jpeg_images import JpegDecoder
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.telemetry.emulator.rover import Pattern
from drone_bridge.telemetry.emulator.world import LandingFlight, Setup
from drone_bridge.telemetry.topics import LandingFrameNames, TelemetrySigns, Translation

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TYPES = {
    "imu/data": Imu,
    "velocity": TwistWithCovarianceStamped,
    "height": PointStamped,
    "landing_pad": LandingPad,
    "camera/image_raw": Image,
    "camera/camera_info": CameraInfo,
}
# For the controller to answer, before the next frame comes anyway: when it has answered the frame before, and when not.
PATIENCE_S = 3.0
IMPATIENCE_S = 0.15
STATES = "drone_controller/state"


def controller(**parameters):
    given = {f"land_on_pad.{name}": value for name, value in parameters.items()}
    return Process.node("drone_controller", behaviour="land_on_pad", **given)


class Bridge:
    """An emulated vehicle, between topics: each frame waits for the answer to the one before."""

    def __init__(self, ros, pattern="stationary", seed=1, **setup):
        self.vehicle = LandingFlight(Setup(seed, Pattern(pattern), **setup))
        self._messages = Translation(LandingFrameNames(), TelemetrySigns(), 60.0, is_levelled=True)
        self._decoder = JpegDecoder("camera_optical_frame")
        self.commands = ros.subscribe(Twist, "cmd_vel")
        self._pilot, self._velocity = BridgePilot(), Velocity()
        self.states = ros.subscribe(ControllerState, STATES)
        self._publishers = {topic: ros.node.create_publisher(kind, topic, 10) for topic, kind in TYPES.items()}
        self._landed = ros.node.create_publisher(Bool, "landed", LATCHED)
        self._told_landed = None
        self._is_answered = False
        self.obeyed = 0
        self.state = None

    def frame(self, without=(), change=None):
        """Publish the next frame, all but the topics in `without`, and follow the answer."""
        telemetry = self.vehicle.advance()
        stamp = time_from_seconds(1000 + telemetry.timestamp)
        make = self._messages
        messages = {
            "imu/data": make.imu(telemetry, stamp),
            "velocity": make.velocity(telemetry, stamp),
            "height": make.height(telemetry, stamp),
            "landing_pad": make.landing_pad(telemetry, stamp),
        }
        if image := telemetry.camera.jpeg:
            messages["camera/image_raw"] = self._decoder.image(image, stamp)
            messages["camera/camera_info"] = make.camera_info(telemetry, stamp)
        if change:
            messages = copy.deepcopy(messages)  # as they are made only once, and refilled
            change(messages)
        for topic, message in messages.items():
            if topic not in without:
                self._publishers[topic].publish(message)
        if telemetry.landed != self._told_landed:
            self._told_landed = telemetry.landed
            self._landed.publish(Bool(data=telemetry.landed))
        self._follow(telemetry, stamp)

    def _follow(self, telemetry, stamp):
        """Wait for the answer to the frame of this stamp, and obey the newest command."""

        def is_answer(state):
            self.state = state
            return state.header.stamp == stamp

        try:
            self.states.wait(is_answer, PATIENCE_S if self._is_answered else IMPATIENCE_S)
            self._is_answered = True
        except AssertionError:  # none may come, as when something is missing
            self._is_answered = False
        twist = None
        with contextlib.suppress(AssertionError):
            twist = self.commands.wait(timeout_s=IMPATIENCE_S if self._is_answered else 0.0)
            while len(self.commands):
                twist = self.commands.wait()
        if twist:
            self.obeyed += 1
            self._velocity = Velocity(twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z)
        self.vehicle.follow_command(self._pilot.command(telemetry, self._velocity))

    def until(self, wanted, what, frames=1500, **options):
        """Publish frames until a state is wanted, and return it."""
        for _ in range(frames):
            self.frame(**options)
            if self.state and wanted(self.state):
                return self.state
        raise AssertionError(f"waited {frames} frames for {what}; last: {self.state}")


def is_in(*names):
    return lambda state: state.state in names


@pytest.mark.parametrize("use_camera", [False, True])
def test_the_pad_is_landed_on(ros, use_camera):
    """By the topic that says where it is, with no image; by images, with nothing on that topic."""
    with controller(use_camera=use_camera) as process:
        bridge = Bridge(ros, "circular", images=use_camera)
        hidden = ("landing_pad",) if use_camera else ()
        seen = ros.subscribe(LandingPad, "drone_controller/landing_pad")
        state = bridge.until(is_in("landed"), "a landing", without=hidden)
        if use_camera:
            pad = seen.wait(lambda pad: pad.detected and pad.distance < 1)
            assert math.hypot(pad.offset_x, pad.offset_y) < 0.6
            assert pad.header.frame_id == "base_link"
            assert 0.5 < pad.confidence <= 1
        assert bool(len(seen)) == use_camera
        assert bridge.vehicle.touchdown.is_good, bridge.vehicle.touchdown.describe()
        assert (state.behaviour, state.reason) == ("land_on_pad", "touchdown was reported")
        for line in ("descending: above the pad", "committed: aligned at", "landed: touchdown was reported"):
            process.wait_for_line(line)
        # The motors are told to stop, and then nothing.
        frames = round(LandParameters().cut_time / 0.04)
        ups = set()
        for _ in range(frames + 20):
            bridge.frame(without=hidden)
            ups.add(bridge.vehicle.drone.command.thrust)
        assert ups == {-1.0, 0.0}
        assert bridge.vehicle.drone.command.thrust == 0.0
        assert bridge.vehicle.touchdown


def test_on_request_it_takes_off_and_lands_as_often_as_it_is_asked(ros):
    with controller(on_request=True):
        bridge = Bridge(ros, "circular", images=False, starts_on_ground=True)
        bridge.until(lambda state: state.reason == "for a call of land_on_pad", "a controller that waits")
        for _ in range(25):
            bridge.frame()
        assert not bridge.obeyed
        for _ in range(2):  # and then from the pad
            assert ros.call(Trigger, "drone_controller/land_on_pad", Trigger.Request()).success
            bridge.until(is_in("searching"), "a climb")
            bridge.until(is_in("approaching", "following", "descending"), "the pad in sight")
            assert bridge.vehicle.drone.position[2] > 0.7 * LandParameters().search_height
            bridge.until(is_in("landed"), "a landing")
            assert bridge.vehicle.touchdown.is_good, bridge.vehicle.touchdown.describe()


def test_it_hovers_when_measurements_cease(ros):
    with controller() as process:
        bridge = Bridge(ros)
        bridge.until(is_in("descending"), "a descent")
        state = bridge.states.wait(is_in("waiting"))
        assert state.reason == "for imu/data, velocity, height, landing_pad"
        bridge.commands.wait(lambda twist: twist == Twist())
        # They come back after more than a second of stamps: everything starts over.
        for _ in range(40):
            bridge.vehicle.advance()
        bridge.until(is_in("landed"), "a landing")
        assert bridge.vehicle.touchdown.is_good
        assert process.stop() == 0


def test_leaving_ends_with_hover(ros):
    with controller(telemetry_timeout=60.0) as process:  # so that nothing but leaving is a reason to hover
        bridge = Bridge(ros, "linear")
        bridge.until(is_in("descending", "approaching"), "a descent")
        bridge.frame()
        bridge.commands.clear()
        assert process.stop() == 0
    bridge.commands.wait(lambda twist: twist == Twist())
    while len(bridge.commands):
        assert bridge.commands.wait() == Twist()
