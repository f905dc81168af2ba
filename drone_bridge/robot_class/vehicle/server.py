# SPDX-License-Identifier: Apache-2.0
"""RobotClassServer: the server node by which a client of a Robot drives a ROS vehicle."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.net.link_loop import Link
from drone_bridge.robot_class.hang import watch_methods
from drone_bridge.robot_class.links import robots_link
from drone_bridge.robot_class.robot import (
    SIZES,
    Command,
    Robot,
    Telemetry,
    created,
    first_link,
    further_links,
    image_of,
    is_stream,
    sized,
)
from drone_bridge.robot_class.topics import REFUSED_IMAGES, RobotClassTranslation, assemble, make_rows
from drone_bridge.robot_class.vehicle.robot_session import RobotClassVehicleSession
from drone_bridge.ros.commands.command_axes import FullScale, velocity_from_shares
from drone_bridge.ros.node.autostart import IncorrigibleError
from drone_bridge.ros.node.common_parameters import (
    ALLOWED_PEERS,
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    full_scale_parameters,
    read_allowed_peers,
    read_group,
    size_parameters,
)
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.servers.service_caller import ServiceCaller
from drone_bridge.ros.servers.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.servers.velocity_publisher import VelocityPublisher
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.table import MissingTopicError
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.session import Answer, Session

ANSWER_TIMEOUT_S = 15.0


def parameters(robot: type[Robot]) -> Sequence[ParameterDeclaration]:
    """Return the parameter declarations of a robot's server."""
    number, timeout_s = first_link(robot).port, robot.robot_stops_after_s or NodeParameters().command_timeout
    meaning = "Port for clients. 0: a free one."
    return (
        *common_parameters(number, meaning, roles=("listen",), command_timeout_s=timeout_s),
        SOURCE_TIMEOUT,
        *(full_scale_parameters(FullScale._fields) if robot.drone else ()),
        NEUTRAL_TIME,
        *size_parameters(robot.sizes, SIZES),
        *(() if is_stream(robot) else (ALLOWED_PEERS,)),
        *(
            ParameterDeclaration(f"{name}_port", link.port, "Port of the client for reports.", range=(1, 65535))
            for name, link in further_links(robot).items()
        ),
        *(
            ParameterDeclaration(f"target.{name}", f"{robot.name}_bridge/{name}", f"Service for {name}.")
            for name in robot.requests
        ),
    )


class RobotClassServer(ProtocolNode):
    """Server of one Robot."""

    robot: type[Robot]
    is_server = True
    open_state = "serving"

    def __init__(self, **options: Any) -> None:
        super().__init__(f"{self.robot.name}_server", parameters(self.robot), **options)

    def set_up(self) -> None:
        watch_methods(self)
        self.robot = sized(type(self).robot, self.parameters.__getitem__)
        self.get_logger().info(f"The robot {self.robot.name} is described by {self.robot.KIND.module}.")
        if isinstance(reason := created(self.robot), str):
            raise IncorrigibleError(reason)
        get = self.parameters.__getitem__
        self._allowed_peers = read_allowed_peers(self.parameters) if not is_stream(self.robot) else None
        names, refuse_image = DroneFrameNames(get("frame_prefix")), partial(self.report.count_and_warn, REFUSED_IMAGES)
        self._translation = RobotClassTranslation(
            names, image_of(self.robot), lidar=self.robot.lidar, refuse_image=refuse_image
        )
        self._sources = TopicSubscriptions(self, make_rows(self.robot), self._translation)
        self._velocities = VelocityPublisher(self, names.base_link if self.robot.drone else None)
        targets = {name: get(f"target.{name}") for name in self.robot.requests}
        self._caller = ServiceCaller(self, targets, ANSWER_TIMEOUT_S)

    def make_transport(self) -> Link:
        return robots_link(self.robot, self.parameters["host"], self.parameters["port"], self.wire_log)

    def make_session(self) -> Session:
        self._session = RobotClassVehicleSession(
            self.robot,
            self.parameters.live(NodeParameters),
            self._telemetry,
            report_port=next((self.parameters[f"{name}_port"] for name in further_links(self.robot)), 0),
            allowed_peers=self._allowed_peers,
        )
        return self._session

    def publish_event(self, message: Command) -> None:
        if isinstance(message, BodyVelocity):
            self._velocities.publish(message, Shares(), self.decided_s)
        else:
            velocity = velocity_from_shares(message, read_group(self.parameters, "full_scale", FullScale))
            self._velocities.publish(velocity, message, self.decided_s)

    def call_service(self, name: str, tag: Any) -> None:
        def finish(answer: Answer) -> None:
            self.post(partial(self._session.answered, tag, answer.is_success, answer.sentence), is_kept=True)

        self._caller.call(name, finish, moves=name not in self.robot.always_accepted)

    def _telemetry(self) -> Telemetry | None:
        telemetry: Telemetry | None = None
        missing: str | None = None
        try:
            telemetry = assemble(self.robot, self._translation, self._sources.value, self.now()).meaning
        except MissingTopicError as error:
            missing = f"no telemetry is sent: missing {error}"
        self.report.update_condition("sources", missing, "stale values are not sent")
        return telemetry


def make_node(robot: type[Robot]) -> type[RobotClassServer]:
    """Return the class of a robot's server."""
    return type(f"{robot.__name__}Server", (RobotClassServer,), {"robot": robot})
