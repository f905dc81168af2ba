# SPDX-License-Identifier: Apache-2.0
"""RobotClassBridge: the bridge node of a Robot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.link_loop import Link
from drone_bridge.pictures.camera import CameraTopics, camera_parameters
from drone_bridge.pictures.h264_port import H264Port
from drone_bridge.pictures.topics import H264_ROW
from drone_bridge.pictures.video_port import video_log
from drone_bridge.robot_class.camera import camera_of
from drone_bridge.robot_class.client_session import RobotClassOperatorSession
from drone_bridge.robot_class.connection import StatePacket
from drone_bridge.robot_class.hang import watch_methods
from drone_bridge.robot_class.heard_reports import HeardReports, OperatorParameters
from drone_bridge.robot_class.links import client_link, login_text
from drone_bridge.robot_class.obedience import DISOBEYS
from drone_bridge.robot_class.robot import (
    AXES,
    RANGES,
    SIZES,
    Robot,
    clamped,
    first_link,
    further_links,
    has_last_words,
    image_of,
    is_stream,
    listens,
    maxima,
    misspelt,
    port_parameters,
    sized,
    unstoppable,
)
from drone_bridge.robot_class.topics import CAMERA, REFUSED_IMAGES, RobotClassTranslation, UnsentTopics, make_rows
from drone_bridge.robot_class.transports import Udp
from drone_bridge.ros.commands.command_reports import TWIST_AXES
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.commands.tilt_commands import TiltCommands, drone_parameters, read_drone
from drone_bridge.ros.node.autostart import IncorrigibleError
from drone_bridge.ros.node.common_parameters import (
    ALLOWED_PEERS,
    common_parameters,
    frame_parameters,
    read_allowed_peers,
    size_parameters,
)
from drone_bridge.ros.node.doubt_reports import report_doubts
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, read
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.request_services import PendingRequest, RequestServices, undeliverable
from drone_bridge.ros.topics.covariances import twist_covariance_parameter
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.ros.topics.transforms import rangefinder_transform, transform
from drone_bridge.ros.topics.wheel_odometry import TWIST_VARIANCES
from drone_bridge.session.continuous_pose import ContinuousPose
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.report_watch import ReportWatch
from drone_bridge.session.session import Actions, Session
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import address_name

ROBOTS_PORT = "The robot's port."
LOGIN = "Environment variable or file with the login, never the login itself, which every node could read."


def reports_velocity(robot: type[Robot]) -> bool:
    """Return whether a topic of the robot has its velocity."""
    return not {"odom", "velocity"}.isdisjoint(robot.standard_topics)


def parameters(robot: type[Robot]) -> Sequence[ParameterDeclaration]:
    """Return the parameter declarations of a robot's bridge."""
    of_links: list[ParameterDeclaration] = []
    first, video = first_link(robot), robot.camera if robot.camera and robot.camera.link else None
    if not isinstance(first, Udp):
        meaning = "Serial line to the robot, such as /dev/ttyUSB0. Empty: host and port."
        of_links.append(ParameterDeclaration("serial", "", meaning))
        meaning = "Baud rate of the serial line."
        of_links.append(ParameterDeclaration("baud", first.baud, meaning, range=(50, 4_000_000)))
    x, y, z, *about = TWIST_VARIANCES
    covariance = twist_covariance_parameter((x, y, x if "z" in robot.axes else z, *about))
    silence, timeout_s = "Timeout of telemetry, s. The bridge then reconnects.", float(robot.link_timeout_s)
    role, meaning = ("listen", "Local port to which the robot sends.") if listens(robot) else ("connect", ROBOTS_PORT)
    return (
        *common_parameters(first.port, meaning, roles=(role,), silence_warning_s=timeout_s),
        *((ALLOWED_PEERS,) if listens(robot) else ()),
        *(
            ParameterDeclaration(name, number, "Local port to which the robot sends.", range=(1, 65535))
            for name, number in port_parameters(robot).items()
        ),
        *(camera_parameters(camera_of(video, "", video.width, video.height), most_rate=60.0) if video else ()),
        *of_links,
        *size_parameters(robot.sizes, SIZES),
        *(() if robot.login is None else (ParameterDeclaration("login", "", LOGIN),)),
        ParameterDeclaration("rate", float(robot.rate), "Rate of commands, Hz.", range=RANGES["rate"], live=True),
        ParameterDeclaration("link_timeout", timeout_s, silence, range=RANGES["link_timeout_s"], live=True),
        *(drone_parameters(robot.drone) if robot.drone else ()),
        *limit_parameters(
            is_drone=robot.model == "drone",
            can_climb="z" in robot.axes,
            tells_battery="battery_state" in robot.standard_topics,
            land_unattended_s=robot.land_unattended_s if "flying" in robot.standard_topics else None,
        ),
        *frame_parameters(without=("publish_map_to_odom", "map_frame")),
        *((covariance,) if reports_velocity(robot) else ()),
    )


class RobotClassBridge(ProtocolNode):
    """Topics and parameters of one Robot, its link, and the session of a client."""

    robot: type[Robot]

    def __init__(self, **options: Any) -> None:
        super().__init__(f"{self.robot.name}_bridge", parameters(self.robot), **options)

    def set_up(self) -> None:
        watch_methods(self)
        self.robot = robot = sized(type(self).robot, self.parameters.__getitem__)
        self.get_logger().info(f"The robot {robot.name} is described by {robot.KIND.module}.")
        for sentence in misspelt(robot):
            self.get_logger().warning(sentence)
        if reason := unstoppable(robot):
            raise IncorrigibleError(reason)
        names = read(DroneFrameNames, self.parameters)
        variances = self.parameters["twist_covariance_diagonal"] if reports_velocity(robot) else TWIST_VARIANCES
        refuse = partial(self.report.count_and_warn, REFUSED_IMAGES)
        translation = RobotClassTranslation(
            names, image_of(robot), lidar=robot.lidar, twist_variances=variances, refuse_image=refuse
        )
        sensors = [rangefinder_transform(names)] if "range" in robot.standard_topics else []
        if lidar := robot.lidar:
            heading = quaternion_from_euler(0.0, 0.0, lidar.yaw)
            sensors.append(transform(names.base_link, names.laser, lidar.mount, heading))
        self._topics = TopicPublishers(self, make_rows(robot), translation, sensors)
        self._unsent = UnsentTopics(robot, translation)
        self._pose = None if robot.absolute_pose else ContinuousPose(self.observed, *maxima(robot))
        self._pictures: CameraTopics | None = None
        if (video := robot.camera) and video.link:
            cameras, of_size = [camera_of(video, "", video.width, video.height)], partial(camera_of, video)
            self._pictures = CameraTopics(self, names, cameras, of_size, H264_ROW, prefix=CAMERA)
        self._pilot: TiltPilot | None = None
        self._watch: ReportWatch | None = None
        self._commands: CommandTopics[Any]
        if robot.drone:
            drone = read_drone(self.parameters, robot.drone)
            self._commands = TiltCommands(self, drone, has_landing_button="land" in robot.requests)
            self._pilot = pilot = TiltPilot(self._commands.arbiter, drone, hovers=robot.hovers)
            report_doubts(self, lambda: pilot.doubts, lambda: pilot.is_drifting)
        else:
            self._commands = CommandTopics(
                self, within_maxima=partial(clamped, robot), has_landing_button="land" in robot.requests
            )
            followed = {AXES[axis] for axis in robot.axes}
            self._commands.take_velocities([axis for axis, (field, _) in TWIST_AXES.items() if field in followed])
            if self._commands.arbiter.limits.parameters.need_odometry:
                self._watch = watch = ReportWatch()
                report_doubts(self, lambda: watch.reasons(elapsed_s()), advice="limits of places still use it")
        ends = robot.always_accepted
        still = ends | {name for name, each in robot.all_requests.items() if not each.moves}
        RequestServices(self, robot.requests, self._ask, refusal=self._refusal, on_hold=still, never_stale=ends)
        self.each_second(self._hold_if_disobedient)
        self.each_second(self._report_obstacles)
        if robot.robot_stops_after_s is None:
            self.get_logger().warning(
                f"{robot.summary} has no watchdog: if the network or this machine fails, it keeps moving."
            )
        if not has_last_words(robot):
            self.get_logger().warning(
                f"{robot.summary} has no last words: if this bridge is killed or stalls, it keeps moving until its "
                f"watchdog stops it. Encoding a command changes state, so declare {robot.__name__}.last_words()."
            )

    def make_transport(self) -> Link:
        get = self.parameters
        self._link = client_link(
            self.robot,
            get["host"],
            get["port"],
            self.connecting_failed,
            ports={name: get[f"{name}_port"] for name in further_links(self.robot)},
            serial=self.serial_line,
            baud=get["baud"] if self.serial_line else 0,
            wire_log=self.wire_log,
        )
        return self._link

    def link_begins(self) -> None:
        if self._pictures:
            log = video_log(self.wire_log)
            ask = partial(self.post, self._session.ask_video)
            hosts = lambda: getattr(self._link, "hosts", None)  # noqa: E731
            self._pictures.start(H264Port(self.parameters["camera_port"], hosts, log, ask))

    def link_ended(self) -> None:
        super().link_ended()
        if self._pictures:
            self._pictures.stop()

    def make_session(self) -> Session:
        self._topics.restart()
        login = login_text(self.parameters["login"]) if self.robot.login is not None else ""
        if self.wire_log and login:
            self.wire_log.secrets = login.encode(), *re.findall(rb"[^\W_]{3,}", login.encode())
        self._session = RobotClassOperatorSession(
            self.robot,
            self._commands.arbiter,
            self.parameters.live(OperatorParameters),
            address_name(self.parameters["host"], self.parameters["port"]),
            HeardReports(
                self.robot,
                Feedback(self.observed, self._commands.arbiter.limits, self._pilot),
                self._watch,
                self._pose,
            ),
            pilot=self._pilot,
            is_line=bool(self.serial_line),
            login=login,
            allowed_peers=read_allowed_peers(self.parameters) if listens(self.robot) else None,
        )
        self._disobedience = self._session.obedience.found
        return self._session

    @property
    def serial_line(self) -> str:
        """See ProtocolNode."""
        return str(self.parameters["serial"]) if is_stream(self.robot) else ""

    def hardware_id(self) -> str:
        return f"{self._protocol_name} {self.serial_line}" if self.serial_line else super().hardware_id()

    def _refusal(self, name: str) -> str | None:
        """Return why a request is refused now, a sentence, or None. Requests that end a flight need no reports."""
        if name in self.robot.always_accepted and self.has_link and self._session.has_peer:
            return None
        return undeliverable(self, name)

    def _ask(self, request: PendingRequest, now_s: float) -> Actions:
        return self._session.ask(request, now_s)

    def _hold_if_disobedient(self) -> None:
        """Hold a robot that does not obey. A hold that is not a person's becomes one, which no new helm ends."""
        if not self.has_link:
            return
        found = self._session.obedience.found
        if self._session.obedience.state == DISOBEYS or found != self._disobedience:
            self._disobedience = found
            self.hold.hold(Obstacle.DISOBEYS.reason(reason=found[1]))

    def _report_obstacles(self) -> None:
        session = self._session if self.has_link else None
        facts = session.reports.facts if session else {}
        self.report.update_obstacle(Obstacle.BLOCKED, facts.get(Obstacle.BLOCKED))
        for obstacle in (Obstacle.NO_PACKET, Obstacle.UNGREETED, Obstacle.UNANSWERED, Obstacle.NO_REPORT):
            self.report.update_obstacle(obstacle, facts.get(obstacle), is_logged=False)  # the session has logged it
        self.report.update_obstacle(Obstacle.UNSENT, self._unsent.facts if session and session.is_open else None)

    def publish_event(self, message: StatePacket) -> None:
        self._topics.publish(message, self.now())
        self._unsent.reported(message, elapsed_s())


def make_node(robot: type[Robot]) -> type[RobotClassBridge]:
    """Return the class of a robot's bridge."""
    return type(f"{robot.__name__}Bridge", (RobotClassBridge,), {"robot": robot})
