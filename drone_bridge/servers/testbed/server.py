# SPDX-License-Identifier: Apache-2.0
"""testbed_server: a virtual testbed for legacy autopilots, flown by whatever drone is in ROS. See docs/testbed.md."""

import math
import time
from functools import partial
from typing import Any, Final

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, Imu

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.links.cancellation import Wakeup
from drone_bridge.links.errors import LinkError
from drone_bridge.links.tcp import TcpStream
from drone_bridge.msg import DroneProperties
from drone_bridge.node.program import run
from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.testbed import NEED_DATA, AngleUnit, AttitudeLayout, ConnectionClosed
from drone_bridge.servers.testbed.helm import Helm
from drone_bridge.servers.testbed.outputs import CommandOutputs
from drone_bridge.servers.testbed.parameters import (
    ATTITUDE_TOPICS,
    DEPTHS,
    LOCKSTEP,
    PARAMETERS,
    SIDES_OF,
    flight_limits,
)
from drone_bridge.servers.testbed.properties import PropertiesWatch
from drone_bridge.servers.testbed.senses import ATTITUDE_PATIENCE_S, Senses
from drone_bridge.servers.testbed.vehicle import RosDrone
from drone_bridge.translate import testbed as translate
from drone_bridge.translate.frame_names import FrameNames
from drone_bridge.translate.testbed import SIDES, Command
from drone_bridge.vehicle_side.testbed.conversation import Conversation, Dialect
from drone_bridge.vehicle_side.testbed.modelled_flight import LevelVelocity, ModelledFlight

_WATCH_PERIOD_S: Final = 0.02
_AUDIENCE_PERIOD_S: Final = 0.5
_RECEIVE_BYTES: Final = 256
#: How long an autopilot that is being left gets to close as well.
_LEAVE_TIMEOUT_S: Final = 0.3
_WAITING: Final = "waiting for the drone"  # of conditions
_UNHEARD: Final = "unheard commands"


class TestbedServer(LinkNode):
    """Sends an autopilot what the drone senses, and publishes its answers as commands."""

    __test__ = False  # not a test, whatever its name tells pytest
    rates = ("frames", "commands")
    problems = (*LinkNode.problems, "dropped messages", "refused frames", "late answers", "neutral commands")

    def __init__(self, **options: Any) -> None:
        super().__init__("testbed_server", PARAMETERS, **options)
        self._wakeup = Wakeup()

    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions."""
        get = self.parameters.__getitem__
        layout, unit = AttitudeLayout(get("attitude_layout")), AngleUnit(get("angle_unit"))
        self._dialect = Dialect(layout, unit, get("negative_gravity"))
        self._stamps_are_simulated = get("stamp_source") == "wire"
        sides = SIDES_OF[get("cameras")]
        self._has_cameras = bool(sides)
        depth = DEPTHS[get("sync")]
        keeps_order = get("sync") == LOCKSTEP
        self._read_timeouts()
        is_one_picture = len(sides) < len(SIDES)
        self._senses = Senses(depth, keeps_order=keeps_order, is_mono=is_one_picture, on_news=self._wakeup.wake)
        self._helm = Helm(self._be_neutral)
        self._drone = RosDrone(
            self._senses,
            unit,
            stamps_are_simulated=self._stamps_are_simulated,
            now_s=time.monotonic,
            longest_s=lambda: self._source_timeout_s,
            command=self._steer,
            follow=self._steer_velocity,
            refuse=lambda sentence: self.complain("refused frames", f"A frame was not sent: {sentence}"),
        )
        self._new_constants = False
        self._outputs = CommandOutputs(self, FrameNames(get("frame_prefix")).base_link)
        in_hand = depth if keeps_order else 1
        for side in sides:
            self.make_subscription(Image, f"{side}/image_raw", partial(self._take_image, side), in_hand)
        topic = "odom" if layout is AttitudeLayout.POSE else get("attitude_from")
        self.make_subscription(ATTITUDE_TOPICS[topic], topic, self._take_attitude, in_hand)
        self._attitude_topic = topic
        self._properties = PropertiesWatch(self, self._learn)
        self.make_timer(_WATCH_PERIOD_S, self._watch)
        self.make_timer(_AUDIENCE_PERIOD_S, self._look_for_audience)

    # In the executor.

    def _take_image(self, side: str, image: Image) -> None:
        self._senses.saw(side, image, time.monotonic())

    def _take_attitude(self, message: Imu | Odometry) -> None:
        now_s = time.monotonic()
        self._senses.felt(message, now_s)
        if not self._has_cameras and self._drone.is_known:
            self._senses.saw(SIDES[0], self._drone.nothing_seen(message.header.stamp), now_s)

    def _learn(self, properties: DroneProperties) -> None:
        before = self._drone.constants if self._drone.is_known else None
        try:
            self._drone.learn(properties)
        except ValueError as error:
            self.complain("rejected input", f"What the drone is said to be can't be announced: {error}")
            return
        self._new_constants = self._new_constants or before not in (None, self._drone.constants)
        self._wakeup.wake()

    def _read_timeouts(self) -> None:
        """Read what may change at any time: asking for a parameter takes too long to do it several times per frame."""
        self._command_timeout_s: float = self.parameters["command_timeout"]
        self._source_timeout_s: float = self.parameters["source_timeout"]
        self._silence_warning_s: float = self.parameters["silence_warning"]

    def _watch(self) -> None:
        self._read_timeouts()
        timeout_s = self._command_timeout_s
        if self._helm.watch(time.monotonic(), timeout_s):
            self.complain(
                "neutral commands",
                f"The autopilot has answered no frame for {timeout_s:g} s (command_timeout): the drone was told to "
                f"{'stop' if self._outputs.is_velocity else 'hover'}.",
            )

    def _look_for_audience(self) -> None:
        is_open = self.statistics.liveness.is_open
        if not self._outputs.look(is_flying=is_open) and is_open:
            self.statistics.begin_condition(_UNHEARD, f"nobody subscribes to {self._outputs.topics}")
        else:
            self.statistics.end_condition(_UNHEARD)

    # The conversation, on the link's thread.

    def converse(self, stream: TcpStream) -> None:
        """Send frames and publish the answers to them."""
        conversation = Conversation(self._drone, self._dialect)
        self._drone.begin()
        self._has_opened = self._new_constants = False
        self._turn_since_s = time.monotonic()  # since when it is our turn to speak
        self.statistics.facts["attitude layout"] = self._dialect.layout.value
        stream.acknowledge_at_once()  # some autopilots send an answer in pieces, with Nagle's algorithm on
        buffer = memoryview(bytearray(_RECEIVE_BYTES))
        try:
            while self._hear(conversation):
                self._speak(stream, conversation)
                if stream.wait(self._wakeup, ATTITUDE_PATIENCE_S / 2):
                    if count := stream.receive_into(buffer):
                        conversation.receive_data(buffer[:count])
                    else:
                        conversation.receive_eof()
                self._wakeup.clear()
            self.inform("The autopilot has left.")
        finally:
            self._helm.let_go()
            stream.leave(b"", _LEAVE_TIMEOUT_S)

    def _hear(self, conversation: Conversation) -> bool:
        """Take the autopilot's answer, if it has come; return whether the autopilot is still there."""
        now_s = time.monotonic()
        late_before, limited_before = conversation.late_answers, self._drone.limited
        conversation.answer_timeout_s = self._command_timeout_s
        if self._drone.flight and not self._helm.is_steered:  # the vehicle was told to stop
            self._drone.flight.rest()
        event = conversation.next_event(now_s)
        if isinstance(event, ConnectionClosed):
            return False
        if event is not NEED_DATA:
            assert self._drone.sensed
            self.opened()
            self.statistics.took("waiting for the autopilot", now_s - self._turn_since_s)
            self._turn_since_s = now_s
            self.statistics.counts["limited commands"] += self._drone.limited - limited_before
            if conversation.late_answers > late_before:
                self.complain("late answers", "An answer took longer than command_timeout and was not followed.")
        if not conversation.awaits_answer:
            self.statistics.liveness.heard()  # it is not its turn to say anything
        return True

    def _speak(self, stream: TcpStream, conversation: Conversation) -> None:
        """Send a frame, if it is time for one; raise LinkError when none has come for too long."""
        if self._new_constants:
            raise LinkError("The drone has other properties, and a testbed announces its own once: beginning anew.")
        if conversation.awaits_answer:
            return
        self._choose_output()
        timeout_s = self._source_timeout_s
        now_s = time.monotonic()
        if not self._has_opened:
            missing = self._senses.missing(now_s, timeout_s)
            if not self._drone.is_known or missing:
                self._say_what_is_missing(missing)
                return
            stream.send_all(conversation.opening(), timeout_s)
            self._has_opened = True
            self._turn_since_s = now_s
            self.reports.end(_WAITING)
        if self._outputs.is_velocity and self._drone.flight is None:
            self._model_flight()
        try:
            pieces = conversation.next_frame(now_s)
        except LocalProtocolError as error:
            self.complain("refused frames", f"A frame was not sent: {error}")
            pieces = []
        for piece in pieces:
            # Longer than command_timeout: one that is held up while it reads keeps its connection, as with a testbed.
            stream.send_all(piece, self._silence_warning_s)
        if pieces:
            assert self._drone.sensed
            self.statistics.counts["frames"] += 1
            self.statistics.counts["dropped frames"] = self._senses.dropped
            self.statistics.counts["images without their other side"] = self._senses.unmatched
            self.statistics.took("frame complete to sent", time.monotonic() - self._drone.sensed.came_s)
            self._turn_since_s = now_s
        elif now_s - self._turn_since_s > timeout_s:
            missing = self._senses.missing(now_s, timeout_s)
            raise LinkError(
                f"Nothing to send has come for {timeout_s:g} s (source_timeout){self._in_words(missing)}: the "
                f"autopilot is left, as a testbed ends a conversation."
            )

    def _say_what_is_missing(self, missing: str) -> None:
        if time.monotonic() - self._turn_since_s < self._source_timeout_s:
            return
        properties = "" if self._drone.is_known else f" {self._properties.missing}"
        self.reports.remind(_WAITING, f"The autopilot waits for its first frame{self._in_words(missing)}.{properties}")

    def _in_words(self, missing: str) -> str:
        """Return what is missing by the names of its topics, as an apposition; or nothing."""
        topics = {"left": "left/image_raw", "right": "right/image_raw", "attitude": self._attitude_topic}
        kinds = missing.split(" and ") if missing else []
        if not self._has_cameras:  # without an attitude there is no picture
            kinds = [kind for kind in kinds if kind not in SIDES]
        names = [self.resolve_topic_name(topics[kind]) for kind in kinds]
        if not names:
            mismatch = self._senses.mismatch(time.monotonic(), self._source_timeout_s)
            return f", and {mismatch}" if mismatch else ""
        return f", and nothing comes on {' and '.join(names)}"

    # What the drone is told.

    def _choose_output(self) -> None:
        """Switch to the topic that has subscribers."""
        outputs = self._outputs
        if outputs.chosen != outputs.wanted:
            self._helm.let_go()
            outputs.chosen, self._drone.flight = outputs.wanted, None
            self.inform(f"Commands are published on {self.resolve_topic_name(outputs.chosen)}, which has subscribers.")
        self.statistics.facts["commands"] = outputs.chosen

    def _model_flight(self) -> None:
        """Start a modelled flight, for a vehicle that follows velocities."""
        gain = self.parameters["velocity.correction_gain"]
        heading_gain = gain if self._dialect.layout is AttitudeLayout.PITCH_YAW else math.inf
        limits, unit = flight_limits(self.parameters), self._dialect.angle_unit
        self._drone.flight = ModelledFlight(self._drone.constants, unit, limits, gain, heading_gain)

    def _steer(self, command: Command, stamp: Time) -> None:
        self._helm.steer(partial(self._outputs.publish_rates, command, stamp), time.monotonic())
        self.statistics.counts["commands"] += 1

    def _steer_velocity(self, velocity: LevelVelocity) -> None:
        twist = translate.twist_from_velocity(*velocity)
        self._helm.steer(partial(self._outputs.publish_velocity, twist), time.monotonic())
        self.statistics.counts["commands"] += 1

    def _be_neutral(self) -> None:
        if self._outputs.is_velocity:
            self._outputs.publish_velocity(Twist())
            return
        stamp = self._senses.newest_stamp if self._stamps_are_simulated else self.now()
        self._outputs.publish_rates(translate.hover(self._drone.constants), stamp)


def main() -> int:
    """Run the node."""
    return run(TestbedServer)
