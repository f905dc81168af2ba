# SPDX-License-Identifier: Apache-2.0
"""ArDroneNode: base of the bridges of an AR.Drone: its parameters, hover, requests, flight, pose and pictures."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from rclpy.publisher import Publisher
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drone_bridge.ar_drone.cameras import CAMERAS, camera_of
from drone_bridge.ar_drone.topics import ArDroneMessages
from drone_bridge.motion.dead_reckoning import DeadReckonedPose, DeadReckoning
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.tilted_drone import TiltedDrone
from drone_bridge.net.clock import elapsed_s
from drone_bridge.pictures.camera import CameraTopics, camera_parameters
from drone_bridge.pictures.source import PictureSource
from drone_bridge.pictures.topics import camera_transforms
from drone_bridge.ros.commands.tilt_commands import TiltCommands
from drone_bridge.ros.node.common_parameters import DRONE_ODOMETRY, frame_parameters
from drone_bridge.ros.node.doubt_reports import report_doubts
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.node.pose_restarts import make_drone_pose
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.request_services import RequestServices
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.table import Topic
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.ros.topics.transforms import rangefinder_transform
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Session
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.vision.picture_camera import PictureCamera
from drone_bridge.wire.addresses import address_name

#: Parameters of odometry and frames.
ODOMETRY_PARAMETERS = (
    DRONE_ODOMETRY,
    *frame_parameters(without=("publish_map_to_odom", "map_frame")),
)


def video_parameters(
    port: int, meaning: str, *cameras: PictureCamera, most_rate: float = 30.0
) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of the video of these cameras, front and downward."""
    meaning = f"{meaning} 0 disables the camera's topics."
    declared = ParameterDeclaration("video_port", port, meaning, range=(0, 65535))
    return declared, *camera_parameters(*cameras, most_rate=most_rate)


class ArDroneNode(ProtocolNode):
    """Node that publishes an AR.Drone's navdata and pictures, and makes requests of its session."""

    #: Names and levels of conditions in /diagnostics: the session's `problems`, in its order.
    conditions: ClassVar[Sequence[tuple[str, bytes]]]

    def __init__(
        self, name: str, parameters: Sequence[ParameterDeclaration], requests: Sequence[str], **options: Any
    ) -> None:
        """`requests` are services with an empty request; on hold all but the first one, a take-off, are accepted."""
        super().__init__(name, parameters, **options)
        self._session: Any = None  # until the node is active
        self._flying: Publisher[Any] | None = None  # until the node is configured
        self._is_hover_held = False
        # They exist before the node is configured, and explain their refusal.
        self._requests = RequestServices(
            self, requests, self._ask, refusal=self._refusal, outlive_cleanup=True, on_hold=requests[1:]
        )
        self.create_service(SetBool, "~/hover", self._serve_hover, callback_group=self._requests.group)

    def set_up_drone(
        self,
        drone: TiltedDrone,
        translation: ArDroneMessages[Any],
        rows: Sequence[Topic],
        cameras: Sequence[PictureCamera],
        packets: Topic | None = None,
    ) -> None:
        """Create topics, commands and pilot.

        Args:
            drone: its maxima.
            translation: converts its navdata.
            rows: topics of navdata, none if there is no navdata.
            cameras: cameras that calibration files may be of.
            packets: topic of unchanged packets of video, if there is one.
        """
        names = translation.names
        self._flying = self.make_publisher(Bool, "flying", latched())
        video = self.parameters["video_port"]
        self._pictures = CameraTopics(self, names, cameras, camera_of, packets) if video else None
        if not self.parameters["publish_odometry"]:
            rows = [row for row in rows if row.of is not DeadReckonedPose]
        # Detections are in the front camera's frame.
        transforms = [rangefinder_transform(names), *camera_transforms(names, CAMERAS)] if rows else []
        self._topics = TopicPublishers(self, rows, translation, transforms)
        commands = TiltCommands(self, drone, has_landing_button=True)
        self._pilot = TiltPilot(commands.arbiter, drone, hovers=True)
        self._pose = make_drone_pose(self, drone, translation)
        report_doubts(self, lambda: self._pilot.doubts, lambda: self._pilot.is_drifting)
        self.each_second(self._report_conditions)

    def make_session(self) -> Session:
        get = self.parameters.__getitem__
        self._dead_reckoning = DeadReckoning()
        self._topics.restart()
        self._session = session = self.new_session(
            address_name(get("host"), get("port")),
            self._pilot,
            Feedback(self.observed, self._pilot.arbiter.limits, self._pilot),
            is_hover_held=lambda: self._is_hover_held,
            pose=self._pose,
        )
        return session

    @abstractmethod
    def new_session(self, *common: Any, **more: Any) -> Session:
        """Create a session with the arguments of any AR.Drone's, and further ones."""

    @abstractmethod
    def video(self) -> PictureSource:
        """Return the drone's video for the current session."""

    def undeliverable(self) -> str | None:
        """Return why commands can't reach the drone now, or None."""
        session = self._session
        return session.undeliverable(elapsed_s()) if session and session.is_open else super().undeliverable()

    def link_begins(self) -> None:
        if self._pictures:
            self._pictures.start(self.video())

    def link_ended(self) -> None:
        super().link_ended()
        if self._pictures:
            self._pictures.stop()
        self._report_conditions()

    # Events of the session, on the link's thread.

    def publish_flying(self, is_flying: bool) -> None:
        """Publish whether the drone flies."""
        if self._flying:
            self.publish(self._flying, Bool(data=is_flying))

    def publish_pose(self, measured: Measurement, stamp: Any) -> None:
        """Publish the pose by dead reckoning."""
        pose = self._dead_reckoning.update(measured, self.decided_s, is_doubted=self._pilot.is_position_doubted)
        if pose:
            self._topics.publish(pose, stamp)

    # For the executor.

    def _ask(self, request: Any, now_s: float) -> Any:
        return self._session.ask(request, now_s)

    @abstractmethod
    def _refusal(self, name: str) -> str | None:
        """Return why a request can't be sent, or None."""

    def _serve_hover(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Hold hover, or release it, also while the node is inactive."""
        if not request.data and not self.takes_commands():
            response.message = "The request may be stale: the bridge was stalled. The drone keeps hovering."
            return response
        if self._is_hover_held and not request.data and self.has_link:
            self._pilot.arbiter.forget()  # it hovers until it gets a new command
        self._is_hover_held = request.data
        response.success = True
        response.message = (
            "The drone hovers and ignores commands." if request.data else "The drone follows commands again."
        )
        return response

    def _report_conditions(self) -> None:
        """Report the session's problems in /diagnostics."""
        problems = self._session.problems if self._session else ("",) * len(self.conditions)
        for (name, level), problem in zip(self.conditions, problems, strict=True):
            self.report.update_condition(name, problem, level=level)
