# SPDX-License-Identifier: Apache-2.0
"""testbed_server: a virtual testbed for legacy autopilots, with any ROS drone. See docs/testbed.md.

`session.drone` has the state machine.
"""

from functools import partial
from typing import Any

from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, Imu

from drone_bridge.msg import DroneProperties
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.link_loop import StreamLink
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.role_links import stream_link
from drone_bridge.ros.time import nanoseconds_of, seconds_of
from drone_bridge.ros.topics.images import ImageBytes, rgb8_pixels
from drone_bridge.session.node_parameters import ServerParameters
from drone_bridge.session.session import Actions
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout, Constants, SizeLimits
from drone_bridge.testbed.topics import SIDES
from drone_bridge.testbed.vehicle.device.modelled_flight import LevelVelocity
from drone_bridge.testbed.vehicle.server.commands import CommandPublisher
from drone_bridge.testbed.vehicle.server.parameters import (
    ATTITUDE_TOPICS,
    DEPTHS,
    LOCKSTEP,
    MAX_SPEED,
    PARAMETERS,
    SIDES_OF,
)
from drone_bridge.testbed.vehicle.server.properties import PropertiesSource, read_properties
from drone_bridge.testbed.vehicle.session.drone import NeutralCommand, OutputSwitched, ServerSetup, TestbedDroneSession
from drone_bridge.testbed.vehicle.session.framed_drone import BLACK, FramedDrone, RatesAnswer
from drone_bridge.testbed.vehicle.session.frames import ATTITUDE, LEFT, FrameSynchronizer
from drone_bridge.testbed.vehicle.session.output_choice import RATES
from drone_bridge.vision.image_error import ImageError

_SUBSCRIBER_CHECK_PERIOD_S = 0.5
#: More than the single reply that an autopilot may send.
_CHUNK_BYTES = 256


def read_pixels(image: Image, constants: Constants) -> ImageBytes:
    """Return an image's pixels as on the wire. Raises ImageError."""
    if (image.width, image.height) != (constants.width, constants.height):
        announced = f"{constants.width} x {constants.height}"
        raise ImageError(f"has {image.width} x {image.height} pixels, but the drone's properties announce {announced}.")
    return rgb8_pixels(image)


class TestbedServer(ProtocolNode):
    """Sends sensor frames to an autopilot, and publishes its replies as commands."""

    is_server = True
    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(self, **options: Any) -> None:
        super().__init__("testbed_server", PARAMETERS, **options)
        self._session: TestbedDroneSession | None = None  # until the node is active
        self._is_waiting = False  # for a call of `_step`

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        layout, self._unit = AttitudeLayout(get("attitude_layout")), AngleUnit(get("angle_unit"))
        sides, is_lockstep = SIDES_OF[get("cameras")], get("sync") == LOCKSTEP
        depth = DEPTHS[get("sync")]
        self._drone = FramedDrone(
            FrameSynchronizer(
                depth, keeps_order=is_lockstep, is_mono=len(sides) < len(SIDES), tolerance_s=get("image_tolerance")
            ),
            read_attitude=partial(translate.sensed, unit=self._unit),
            read_pixels=read_pixels,
            stamps_are_simulated=get("stamp_source") == "wire",
        )
        attitude = "odom" if layout is AttitudeLayout.POSE else get("attitude_from")
        self._commands = CommandPublisher(self, self._drone, self._unit, attitude)
        in_hand = depth if is_lockstep else 1
        for side in sides:
            self.make_subscription(Image, f"{side}/image_raw", partial(self._take_image, side), in_hand)
        self.make_subscription(ATTITUDE_TOPICS[attitude], attitude, self._take_attitude, in_hand)
        if attitude != "odom" and get("command_output") != RATES:  # the modelled flight needs the position
            self.make_subscription(Odometry, "odom", self._locate, 1)
        needed = {side: f"{side}/image_raw" for side in sides} | {"attitude": attitude}
        self._setup = ServerSetup(
            layout,
            self._unit,
            get("negative_gravity"),
            get(MAX_SPEED),
            is_lockstep,
            {kind: self.resolve_topic_name(topic) for kind, topic in needed.items()},
        )
        self._properties = PropertiesSource(self, self._apply_properties)
        self.report.facts["attitude_layout"] = layout.value
        self.make_timer(_SUBSCRIBER_CHECK_PERIOD_S, self._check_subscribers)
        self.each_second(self._report_frames)

    def make_transport(self) -> StreamLink:
        connects = self.parameters["role"] == "connect"  # else the place of a vanished autopilot goes to the next one
        options = StreamOptions(
            _CHUNK_BYTES,
            expects_acknowledgements=connects,
            acknowledges_at_once=True,  # some autopilots send replies in pieces, with Nagle's algorithm
            max_unread_bytes=2 * SizeLimits().frame_bytes,  # more than is ever sent: one frame and the constants
        )
        self._transport = stream_link(self, options)
        return self._transport

    def make_session(self) -> TestbedDroneSession:
        self._is_waiting = False
        self._session = TestbedDroneSession(
            self._drone,
            self._commands.choice,
            self._setup,
            self.parameters.live(ServerParameters),
            neutral_meaning=lambda: self._commands.neutral_meaning,
            missing_properties=lambda: self._properties.missing,
            has_unsent=self._transport.has_unsent,
        )
        self._note_topic()
        return self._session

    def link_ended(self) -> None:
        self._session = None
        super().link_ended()

    # Events of the session, on the link's thread.

    def publish_event(self, message: RatesAnswer | LevelVelocity | NeutralCommand | OutputSwitched) -> None:
        """Publish a command, or log an event of the session."""
        if isinstance(message, RatesAnswer | LevelVelocity):
            self._commands.publish(message, self.decided_s)
        elif isinstance(message, NeutralCommand):
            self._commands.publish_neutral(message.topic)
        else:
            topic = self.resolve_topic_name(message.topic)
            self.report.inform(f"Publishing commands on {topic}, which has subscribers.")
            self._note_topic()

    # For the executor.

    def _take_image(self, side: str, image: Image) -> None:
        self._drone.frames.add(side, nanoseconds_of(image.header.stamp), image, elapsed_s())
        self._schedule_step()

    def _take_attitude(self, message: Imu | Odometry) -> None:
        self._commands.set_attitude(message.orientation if isinstance(message, Imu) else message.pose.pose.orientation)
        stamp_ns, now_s = nanoseconds_of(message.header.stamp), elapsed_s()
        self._drone.frames.add(ATTITUDE, stamp_ns, message, now_s)
        if not self._setup.has_cameras:
            self._drone.frames.add(LEFT, stamp_ns, BLACK, now_s)
        self._schedule_step()

    def _schedule_step(self) -> None:
        """Schedule a step of the session if there is a link."""
        if not self._is_waiting and (session := self._session) and session.has_link:
            self._is_waiting = True  # before it may look
            if not self.post(self._step, is_kept=True):
                self._is_waiting = False

    def _step(self, now_s: float) -> Actions:
        """Run a step of the session, on the link's thread."""
        self._is_waiting = False
        return self._session.step(now_s) if self._session else []

    def _locate(self, odometry: Odometry) -> None:
        try:
            pose = translate.sensed(odometry, self._unit)
        except ValueError as error:
            self.report.count_and_warn(
                "rejected_input", f"A message on {self.resolve_topic_name('odom')} was refused: {error}"
            )
            return
        self._drone.locate(seconds_of(odometry.header.stamp), pose)

    def _apply_properties(self, properties: DroneProperties) -> None:
        try:
            self._drone.set_constants(read_properties(properties, self._unit))
        except ValueError as error:
            self.report.count_and_warn("rejected_input", f"The drone's properties were refused: {error}")
            return
        self._schedule_step()

    def _check_subscribers(self) -> None:
        self._commands.update_output(is_flying=self.report.is_open)

    # Reports.

    def _note_topic(self) -> None:
        self.report.facts["commands"] = self._commands.choice.chosen

    def _report_frames(self) -> None:
        frames, counts = self._drone.frames, self.report.counts
        counts["dropped_frames"], counts["unpaired_images"] = frames.dropped, frames.unmatched
        session = self._session
        self.report.update_condition("waiting for the drone", session.waits_for.rstrip(".") if session else "")


def main() -> int:
    """Run the node."""
    return run(TestbedServer)
