# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge: the autopilot side of the testbed protocol, as a ROS 2 node. See docs/testbed.md.

`session.autopilot` has the state machine.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.msg import CommandRates
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.link_loop import StreamLink
from drone_bridge.net.tcp_connection import StreamOptions, StreamPeer
from drone_bridge.ros.commands.command_streams import PERIOD_S
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.node.common_parameters import common_parameters, frame_parameters
from drone_bridge.ros.node.doubt_reports import report_doubts
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.role_links import stream_link
from drone_bridge.ros.node.simulated_time import Stamps, time_parameters
from drone_bridge.ros.qos import latched
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.ros.topics.transforms import transform
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout, AutopilotConnection, Constants, SensorFrame
from drone_bridge.testbed.session.autopilot import AutopilotSession, ConversationEnd, LayoutFound, SimulationRestart
from drone_bridge.testbed.session.flight import TestbedFlight
from drone_bridge.testbed.topics import (
    ANGLE_UNIT,
    AUTO,
    TIME_UNIT,
    TIME_UNITS,
    TOPICS,
    StereoFrameNames,
    attitude_layout,
)
from drone_bridge.vision.jpegs import load_opencv

# Parameters.

MAX_SPEED = "velocity.max_speed"
#: Value of the parameter sync.
LOCKSTEP = "lockstep"

PARAMETERS = (
    *common_parameters(8000, "Port of the testbed. When listening, 0 picks a free port."),
    attitude_layout(is_detectable=True),
    ANGLE_UNIT,
    TIME_UNIT,
    ParameterDeclaration(
        "sync",
        "latest",
        "latest answers each frame immediately with the newest command. lockstep waits for the command with its stamp.",
        choices=("latest", LOCKSTEP),
    ),
    *time_parameters("the testbed's simulated"),
    *frame_parameters(),
    ParameterDeclaration(MAX_SPEED, 5.0, "Maximum horizontal speed, m/s.", range=(0.1, 50.0)),
    *limit_parameters(is_drone=True),
)

# Components of a Twist that cmd_vel uses.
FOLLOWED_AXES = ("linear.x", "linear.y", "linear.z", "angular.z")


# The node.

#: Topics without data if the testbed sends no positions. The page offers goals only to vehicles with odometry.
POSE_TOPICS = ("odom", "/tf")
#: Longer than in other bridges, since each count delays one frame: at 30 frames per second, CPU caches are cold.
SUBSCRIBER_CHECK_PERIOD_S = 0.5


class TestbedBridge(ProtocolNode):
    """Publishes the testbed drone's sensor data, and answers each frame with a command."""

    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(self, **options: Any) -> None:
        super().__init__("testbed_bridge", PARAMETERS, **options)
        self._session: AutopilotSession | None = None  # until the node is active

    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions."""
        get = self.parameters.__getitem__
        self._unit = AngleUnit(get("angle_unit"))
        self._layout = None if get("attitude_layout") == AUTO else AttitudeLayout(get("attitude_layout"))
        self._time_unit_s = TIME_UNITS[get("time_unit")]
        self._stamps = Stamps(self.parameters, self.now)
        self._flight: TestbedFlight | None = None  # until a testbed has announced its drone
        report_doubts(self, lambda: self._flight.doubts if self._flight else ())
        self._names = read(StereoFrameNames, self.parameters)
        load_opencv()
        self._translation = translate.TestbedTranslation(
            self._unit,
            self._names,
            refuse_image=partial(self.report.count_and_warn, "images_not_compressed"),
            time_unit_s=self._time_unit_s,
        )
        self._topics = TopicPublishers(
            self,
            [row for row in TOPICS if row.name not in POSE_TOPICS],
            self._translation,
            period_s=SUBSCRIBER_CHECK_PERIOD_S,
        )
        self._pose_topics: TopicPublishers | None = None  # until the testbed is known to send positions
        if self._layout is AttitudeLayout.POSE:
            self._offer_pose()
        self._static_tf = self.make_publisher(TFMessage, "/tf_static", latched())
        clock, is_lockstep = self._stamps.command_clock, get("sync") == LOCKSTEP
        self._commands: CommandTopics[RatesAndThrust] = CommandTopics(
            self,
            clock,
            self._post_command if is_lockstep else lambda: None,
            period_s=None if is_lockstep else PERIOD_S,
            within_maxima=self._within_maxima,
        )
        self._commands.take_velocities(FOLLOWED_AXES)
        self._commands.take("cmd_rates", CommandRates, translate.command_from_rates)

    def make_transport(self) -> StreamLink:
        options = StreamOptions(
            expects_acknowledgements=True,  # else a testbed that vanishes while a reply is in flight is never detected
            acknowledges_at_once=True,  # many testbeds send a frame in pieces, with Nagle's algorithm on
            memory=self._memory,
        )
        return stream_link(self, options)

    def make_session(self) -> AutopilotSession:
        self._session = AutopilotSession(
            self._commands.arbiter,
            # A frame is published before the next one is read, and publish() does not keep a reference to the array.
            partial(AutopilotConnection, self._layout, self._unit, reuses_images=True),
            self._make_flight,
            self._stamp,
            self.parameters.live(NodeParameters),
            feedback=Feedback(self.observed, self._commands.arbiter.limits),
            is_lockstep=self.parameters["sync"] == LOCKSTEP,
            layout=self.parameters["attitude_layout"],
        )
        return self._session

    def link_ended(self) -> None:
        super().link_ended()
        self._session = None

    # For the session, on the loop's thread.

    def _memory(self, peer: StreamPeer) -> Sequence[memoryview]:
        assert self._session
        return self._session.memory(peer)

    def _make_flight(self, constants: Constants) -> TestbedFlight:
        self._flight = TestbedFlight(constants, self._unit, self.parameters[MAX_SPEED], self._time_unit_s)
        return self._flight

    def _within_maxima(self, command: RatesAndThrust | BodyVelocity) -> RatesAndThrust | BodyVelocity:
        return self._flight.within_maxima(command) if self._flight else command

    def _stamp(self, frame: SensorFrame) -> Time:
        """Return the stamp of a frame."""
        time_s = frame.time * self._time_unit_s
        return self._stamps.stamp(time_from_seconds(time_s) if self._stamps.are_wire_time else None)

    def publish_event(
        self, message: SensorFrame | Constants | LayoutFound | SimulationRestart | ConversationEnd
    ) -> None:
        """Publish a frame, or an event of the session."""
        if isinstance(message, SensorFrame):
            stamp = self._stamps.newest  # which the session has requested
            self._topics.publish(message, stamp)
            if self._pose_topics:
                self._pose_topics.publish(message, stamp)
            self.report.counts["frames"] += 1
            self.report.record_duration("frame_received_to_published", elapsed_s() - self.decided_s)
        elif isinstance(message, Constants):
            self._announce(message)
        elif isinstance(message, LayoutFound):
            self._report_layout(message.layout, message.constants)
        elif isinstance(message, SimulationRestart):
            self._topics.publish(message.constants, self.now())  # controllers start over when they receive it
        else:
            self._translation.forget()

    def _announce(self, constants: Constants) -> None:
        """Publish the constants, and prepare the outputs of each frame."""
        self.observed.restart()
        self.report.facts["attitude_layout"] = self._layout.value if self._layout else "to be decided"
        self._topics.restart()
        self._topics.publish(constants, self.now())
        self._publish_static_transforms(constants, self._layout)

    def _report_layout(self, layout: AttitudeLayout, constants: Constants) -> None:
        """Log the detected layout, and offer its topics."""
        self.report.facts["attitude_layout"] = f"{layout.value} ({AUTO})"
        floats = f"{len(layout.floats)} floats after the images"
        if layout is AttitudeLayout.POSE:
            self._offer_pose()
            self.report.inform(f"The testbed sends {floats}: detected attitude_layout pose.")
            self._publish_static_transforms(constants, layout)
        else:
            self.report.inform(
                f"The testbed sends {floats}: assuming attitude_layout {layout.value}, the documented one. If the "
                f"second float is roll, as with many testbeds, set it to {AttitudeLayout.PITCH_ROLL.value}."
            )

    def _publish_static_transforms(self, constants: Constants, layout: AttitudeLayout | None) -> None:
        """Publish the camera frames, and the map once the testbed is known to send positions."""
        transforms = translate.camera_transforms(constants, self._names)
        if layout is AttitudeLayout.POSE and self.parameters["publish_map_to_odom"]:
            transforms.append(transform(self._names.map, self._names.odom))  # positions on the wire do not drift
        now = self.now()
        for each in transforms:
            each.header.stamp = now
        self.publish(self._static_tf, TFMessage(transforms=transforms))

    def _offer_pose(self) -> TopicPublishers:
        if self._pose_topics is None:
            rows = [row for row in TOPICS if row.name in POSE_TOPICS]
            self._pose_topics = TopicPublishers(self, rows, self._translation, period_s=SUBSCRIBER_CHECK_PERIOD_S)
        return self._pose_topics

    # For the executor.

    def _post_command(self) -> None:
        """Pass a new command, or its timeout, to the session, which may be waiting for it."""
        if session := self._session:
            self.post(partial(session.commanded, self._commands.arbiter.newest))


def main() -> int:
    """Run the node."""
    return run(TestbedBridge)
