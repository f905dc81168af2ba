# SPDX-License-Identifier: Apache-2.0
"""Behaviours waypoints and land_on_pad of drone_controller, with a fake clock and a simulated vehicle."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
from controller_node import ControllerNode
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from pad_flight import BridgePilot
from std_msgs.msg import Bool

from drone_bridge.controllers.land_on_pad.pilot import CUT_TIME, SEARCH_HEIGHT
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.msg import HoldStatus
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.jpeg_images import JpegDecoder
from drone_bridge.ros.topics.transforms import set_quaternion
from drone_bridge.telemetry.topics import LandingFrameNames, TelemetryTranslation
from drone_bridge.telemetry.units import Units
from drone_bridge.telemetry.vehicle.emulator.rover import RoverPattern
from drone_bridge.telemetry.vehicle.emulator.world import FlightSetup, LandingFlight

STILL = Twist()
PERIOD_S = 0.02


def odometry_at(position=(0.0, 0.0, 0.0), yaw=0.0, **orientation):
    message = Odometry(child_frame_id="d1/base_link")
    message.header.frame_id = "odom"
    at = message.pose.pose.position
    at.x, at.y, at.z = map(float, position)
    set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, yaw))
    for name, value in orientation.items():
        setattr(message.pose.pose.orientation, name, value)
    return message


def twist_of(forward=0.0, turn=0.0):
    message = Twist()
    message.linear.x, message.angular.z = forward, turn
    return message


# waypoints.


class Vehicle:
    """Vehicle that follows cmd_vel, and publishes odometry."""

    def __init__(self, clock, **parameters):
        self.node = ControllerNode(clock, "waypoints", **parameters)
        self.position, self.yaw, self.path = np.zeros(3), 0.0, []
        self.commands = []

    def move(self, seconds, until=None):
        for _ in range(round(seconds / PERIOD_S)):
            self.node.say(odom=odometry_at(self.position, self.yaw))
            self.node.run(PERIOD_S)
            self.commands += self.node.commands("/cmd_vel_goal")
            twist = self.commands[-1] if self.commands else STILL
            cos, sin = math.cos(self.yaw), math.sin(self.yaw)
            x, y = twist.linear.x, twist.linear.y
            self.position += PERIOD_S * np.array([cos * x - sin * y, sin * x + cos * y, twist.linear.z])
            self.yaw += PERIOD_S * twist.angular.z
            self.path.append(tuple(self.position))
            if until and self.node.state.state == until:
                return


POINTS = ["x=1 y=0 z=-0.5 yaw=1.5708", "x=1 y=1 z=-0.5"]


def test_points_are_reached_and_the_last_one_is_held(clock):
    vehicle = Vehicle(clock, points=POINTS, position_tolerance=0.1, max_speed=2.0)
    vehicle.node.run(0.1)
    waiting = vehicle.node.state
    assert (waiting.behaviour, waiting.state, waiting.reason) == ("waypoints", "waiting", "for odometry")
    assert math.isnan(waiting.distance)
    vehicle.move(1.0, until="going")
    assert "1 of 2: x 1.00 y 0.00 z -0.50 m, yaw 90°" in vehicle.node.state.reason
    vehicle.move(30.0, until="done")
    done = vehicle.node.state
    assert done.reason.endswith("2 of 2: x 1.00 y 1.00 z -0.50 m")
    assert done.distance < 0.15
    assert done.header.frame_id == "d1/base_link"
    vehicle.move(10.0)
    assert np.linalg.norm(vehicle.position - (1, 1, -0.5)) < 0.02
    assert vehicle.yaw == pytest.approx(math.pi / 2, abs=0.2)
    assert np.linalg.norm(np.array(vehicle.path) - (1, 0, -0.5), axis=1).min() < 0.15


@pytest.mark.parametrize(("points", "called"), [(POINTS, []), (["takeoff for=5", "forward=0.3 for=2"], ["takeoff"])])
def test_only_clients_of_its_services_are_created(clock, points, called):
    assert Vehicle(clock, points=points).node.clients == called


def test_no_command_before_odometry_and_zero_once_it_is_stale(clock):
    vehicle = Vehicle(clock, points=["x=1000"], odometry_timeout=0.3)
    node = vehicle.node
    node.run(1.0)
    assert not node.commands("/cmd_vel_goal")
    vehicle.move(3.0)
    assert vehicle.commands[-1] == twist_of(0.5)
    node.run(0.4)
    assert (node.state.state, node.state.reason) == ("stopped", "no odometry for 0.3 s")
    assert node.commands("/cmd_vel_goal")[-1] == STILL
    vehicle.move(3.0)
    assert vehicle.commands[-1] == twist_of(0.5)
    # Impossible numbers count as missing.
    for orientation in ({"x": math.nan}, {"w": 0.0, "z": 0.0}):
        for _ in range(20):
            node.say(odom=odometry_at(**orientation))
            node.run(PERIOD_S)
        assert node.commands("/cmd_vel_goal")[-1] == STILL
    assert 0 < sum("orientation in odom" in line for line in node.lines) < 20


def test_a_state_whose_reason_flaps_is_logged_seldom(clock):
    node = ControllerNode(clock, "waypoints", points=["x=1000"])
    log = StatePublisher(node, "goals", logs_reasons=True)
    for number in range(60):
        clock[0] += 0.5
        log.publish("go_to", ("on the way", "waits for odometry")[number % 2])
    assert 2 < len(node.lines) < 10
    log.publish("idle", "Canceled.")
    log.publish("go_to", "on the way")
    assert node.lines[-1] == "go_to: on the way"


def test_the_last_command_is_zero(clock):
    vehicle = Vehicle(clock, points=["x=1000 yaw=1"])
    vehicle.move(1.0)
    vehicle.node.behaviour.leave()
    vehicle.node.run(1.0)
    assert vehicle.node.commands("/cmd_vel_goal") == [STILL]


# land_on_pad.


class Bridge:
    """Emulated vehicle, with an immediate reply to each of its frames."""

    def __init__(self, node, pattern="stationary", **setup):
        self.node, self.vehicle = node, LandingFlight(FlightSetup(1, RoverPattern(pattern), **setup))
        self._messages = TelemetryTranslation(LandingFrameNames(), Units())
        self._decoder = JpegDecoder("camera_optical_frame")
        self._said_landed = None
        self._pilot, self._velocity = BridgePilot(), BodyVelocity()
        self.obeyed = self.final = 0

    def frame(self, without=()):
        """Publish the next frame, all but the topics in `without`, and follow the answer."""
        telemetry = self.vehicle.advance()
        stamp = time_from_seconds(1000 + telemetry.timestamp)
        make = self._messages
        messages = {
            "imu__data": make.imu(telemetry, stamp),
            "velocity": make.velocity(telemetry, stamp),
            "height": make.height(telemetry, stamp),
            "landing_pad": make.landing_pad(telemetry, stamp),
        }
        if image := telemetry.camera.jpeg:
            messages["camera__image_raw"] = self._decoder.image(image, stamp)
            messages["camera__camera_info"] = make.camera_info(telemetry, stamp)
        self.node.run(0.04)
        if telemetry.landed != self._said_landed:
            self._said_landed = telemetry.landed
            self.node.say(landed=Bool(data=telemetry.landed))
        self.node.say(**copy.deepcopy({topic: each for topic, each in messages.items() if topic not in without}))
        landing = self.node.commands("/cmd_vel_landing")
        self.final += len(landing)
        for twist in self.node.commands("/cmd_vel_goal") + landing:
            self.obeyed += 1
            self._velocity = BodyVelocity(twist.linear.x, twist.linear.y, twist.linear.z, turn=twist.angular.z)
        self.vehicle.follow_command(self._pilot.command(telemetry, self._velocity))

    def frames(self, count):
        for _ in range(count):
            self.frame()

    def until(self, *names, frames=1500, **options):
        """Publish frames until a state is one of these, and return it."""
        for _ in range(frames):
            self.frame(**options)
            if self.node.state.state in names:
                return self.node.state
        raise AssertionError(f"not {names} but {self.node.state}")


def on_ground(node):
    return Bridge(node, "circular", images=False, starts_on_ground=True)


@pytest.mark.parametrize("use_camera", [False, True])
def test_the_pad_is_landed_on(clock, use_camera):
    """By the topic landing_pad without images, and by images without that topic."""
    node = ControllerNode(clock, "land_on_pad", use_camera=use_camera)
    bridge = Bridge(node, "circular", images=use_camera)
    hidden = ("landing_pad",) if use_camera else ()
    bridge.until("committed", without=hidden)
    assert bridge.final <= 1
    state = bridge.until("landed", without=hidden)
    if use_camera:
        pad = next(pad for pad in node.published["~/landing_pad"] if pad.detected and pad.distance < 1)
        assert math.hypot(pad.offset_x, pad.offset_y) < 0.6
        assert pad.header.frame_id == "base_link"
        assert 0.5 < pad.confidence <= 1
    assert ("~/landing_pad" in node.published) == use_camera
    assert bridge.vehicle.touchdown.is_good, bridge.vehicle.touchdown.describe()
    assert (state.behaviour, state.reason) == ("land_on_pad", "touchdown was reported")
    for line in ("descending: above the pad", "committed: aligned at", "landed: touchdown was reported"):
        assert any(said.startswith(line) for said in node.lines)
    # The motors are stopped, and no more commands follow.
    ups = set()
    for _ in range(round(CUT_TIME / 0.04) + 20):
        bridge.frame(without=hidden)
        ups.add(bridge.vehicle.drone.command.thrust)
    assert ups == {-1.0, 0.0}
    assert bridge.final > CUT_TIME / 0.04, "no program keeps it in the air"
    bridge.final = 0
    bridge.frames(20)
    assert not bridge.final, "it may take off again"
    assert bridge.vehicle.drone.command.thrust == 0.0


def test_on_request_it_takes_off_and_lands_repeatedly(clock):
    node = ControllerNode(clock, "land_on_pad", on_request=True)
    bridge = on_ground(node)
    bridge.frames(25)
    assert node.state.reason == "for a call of land_on_pad"
    assert not bridge.obeyed
    for _ in range(2):  # and then from the pad
        assert node.call("~/land_on_pad").success
        bridge.until("searching")
        bridge.until("approaching", "following", "descending")
        assert bridge.vehicle.drone.position[2] > 0.7 * SEARCH_HEIGHT
        bridge.until("landed")
        assert bridge.vehicle.touchdown.is_good, bridge.vehicle.touchdown.describe()


def test_a_viewer_starts_a_landing_once(clock):
    node = ControllerNode(clock, "land_on_pad", on_request=True, when_viewed=True)
    bridge = on_ground(node)
    node.run(0.5)
    bridge.frame()
    node.say(web_bridge__viewed=Bool(data=False))
    bridge.frame()
    assert node.lines[-1] == "waiting: for a call of land_on_pad or a viewer"
    assert node.lines[0].startswith("waiting: for imu/data, ")
    node.say(web_bridge__viewed=Bool(data=True))
    bridge.until("landed")
    for _ in range(2):  # as from a page server that is killed and comes back
        node.say(web_bridge__viewed=Bool(data=False))
        node.say(web_bridge__viewed=Bool(data=True))
        bridge.frames(25)
        assert node.state.state == "landed"


@pytest.mark.parametrize(
    "interfere",
    [
        lambda node: (node.say(held=Bool(data=True)), node.say(held=Bool(data=False))),
        lambda node: (node.say(landed=Bool(data=False)), node.say(landed=Bool(data=True))),
    ],
    ids=["stopped", "landed"],
)
def test_a_viewer_starts_no_landing_after_a_person_has_interfered(clock, interfere):
    node = ControllerNode(clock, "land_on_pad", on_request=True, when_viewed=True)
    bridge = on_ground(node)
    interfere(node)
    node.say(web_bridge__viewed=Bool(data=True))
    bridge.frames(25)
    assert node.state.state == "waiting"
    assert not bridge.obeyed
    assert node.call("~/land_on_pad").success  # a person may begin it
    bridge.until("searching")


@pytest.mark.parametrize("given", [{"on_request": True}, {"on_request": True, "when_viewed": False}])
def test_a_viewer_of_a_real_drone_starts_no_landing(clock, given):
    node = ControllerNode(clock, "land_on_pad", **given)
    bridge = on_ground(node)
    node.say(web_bridge__viewed=Bool(data=True))
    bridge.frame()
    assert node.state.state == "waiting"


def test_it_hovers_when_measurements_stop(clock):
    node = ControllerNode(clock, "land_on_pad")
    bridge = Bridge(node)
    bridge.until("descending")
    node.run(1.0)
    assert (node.state.state, node.state.reason) == ("waiting", "for imu/data, velocity, height, landing_pad")
    commands = node.commands("/cmd_vel_goal")
    assert commands == [STILL] * len(commands) != []
    # They come back after more than a second of stamps: everything starts over.
    for _ in range(40):
        bridge.vehicle.advance()
    bridge.until("landed")
    assert bridge.vehicle.touchdown.is_good


def test_leaving_ends_with_hover(clock):
    node = ControllerNode(clock, "land_on_pad")
    bridge = Bridge(node, "linear")
    bridge.until("descending", "approaching")
    node.behaviour.leave()
    assert node.commands("/cmd_vel_goal") == [STILL]
    bridge.frame()
    assert not node.commands("/cmd_vel_goal")


@pytest.mark.parametrize(
    ("status", "remedy"),
    [({"held": True, "reason": "STOP"}, "drone-bridge resume"), ({"helm": True}, "release the helm"), ({}, "")],
)
def test_a_landing_on_the_pad_that_the_bridge_would_not_follow_is_refused(clock, status, remedy):
    node = ControllerNode(clock, "land_on_pad", on_request=True)
    node.count_subscribers = lambda topic: 1
    subscriber = SimpleNamespace(node_name="bridge", node_namespace="/", topic_type="geometry_msgs/msg/TwistStamped")
    node.get_subscriptions_info_by_topic = lambda topic: [subscriber]
    node.run(1.1)
    node.say(**{"/bridge/hold_status": HoldStatus(**status)})
    answer = node.call("~/land_on_pad")
    assert (answer.success, remedy in answer.message) == (not remedy, True)
