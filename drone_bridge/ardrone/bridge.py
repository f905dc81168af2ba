# SPDX-License-Identifier: Apache-2.0
"""ardrone_bridge: flies an AR.Drone 1 or 2, as a ROS 2 node. See docs/ardrone.md.

`session.client` has the state machine, including take-off, landing and emergency. This node adds topics, parameters,
services and a link.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool

from drone_bridge.ar_drone.bridge import ODOMETRY_PARAMETERS, ArDroneNode, video_parameters
from drone_bridge.ar_drone.cameras import DOWN, DOWN_2, FRONT, FRONT_2
from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.ardrone.codec import CONTROL_PORT, DEFAULT_PORT, NAVDATA_PORT, VIDEO_PORT, Navdata, setting
from drone_bridge.ardrone.codec.configuration import FIRMWARE
from drone_bridge.ardrone.codec.navdata import full_options
from drone_bridge.ardrone.pictures import DroneVideo
from drone_bridge.ardrone.ports import DronePeer
from drone_bridge.ardrone.session.client import CONNECTED, ArdroneClientSession, MeasuredNavdata
from drone_bridge.ardrone.session.navdata_watch import flight_state
from drone_bridge.ardrone.session.requests import FLAT_TRIM, RESET, TAKE_OFF, ArdroneClientParameters
from drone_bridge.ardrone.session.settings import DroneSettings, WantedSetting
from drone_bridge.ardrone.topics import TOPICS, ArdroneTranslation
from drone_bridge.motion.tilted_drone import TiltedDrone
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.node.common_parameters import common_parameters
from drone_bridge.ros.node.limit_reports import LAND_UNATTENDED_S, limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations, read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.session.session import EMERGENCY, LAND

#: Services with an empty request.
REQUESTS = (TAKE_OFF, LAND, RESET, EMERGENCY, FLAT_TRIM)
#: Values of the drone's setting, by camera.
CHANNELS = {FRONT.name: 0, DOWN.name: 1}
CHANNEL = "video:video_channel"
#: Keeps the drone's own value.
KEEP = "keep"

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "Port of the drone for commands.", roles=("connect",)),
    ParameterDeclaration("navdata_port", NAVDATA_PORT, "Port of the drone for navdata.", range=(1, 65535)),
    ParameterDeclaration(
        "control_port", CONTROL_PORT, "Port of the drone for its settings. 0: they are not read.", range=(0, 65535)
    ),
    *declarations(ArdroneClientParameters),
    ParameterDeclaration(
        "navdata",
        "demo",
        "demo: 15 per second. full: 200 per second with rates, accelerations, magnetic field and pressure, of which "
        "imu/data has all, and other topics 30.",
        choices=("demo", "full"),
    ),
    *video_parameters(
        VIDEO_PORT,
        "Port of the drone for video.",
        FRONT_2,
        DOWN_2,
        most_rate=60.0,  # all, at irregular times
    ),
    ParameterDeclaration("camera", "front", "Camera of the video: front or down.", choices=tuple(CHANNELS), live=True),
    *(
        ParameterDeclaration(
            f"drone.{name}",
            0.0,
            f"{meaning} Written to the drone on the ground, and read back. 0 keeps what it has.",
            range=(0.0, most),
        )
        for name, meaning, most in (
            ("max_tilt", "Tilt at full deflection, rad, 0.52 at most.", 0.52),
            ("max_climb", "Climb at full deflection, m/s, 2 at most.", 2.0),
            ("max_yaw_rate", "Turn rate at full deflection, rad/s, 6.11 at most.", 6.11),
            ("altitude_max", "Height that the drone does not exceed, m.", 100.0),
        )
    ),
    *(
        ParameterDeclaration(f"drone.{name}", KEEP, meaning, choices=(KEEP, "true", "false"))
        for name, meaning in (
            ("outdoor", "Whether the drone uses its settings for outdoors. Written on the ground."),
            ("hull", "Whether the hull for indoors is mounted. Written on the ground."),
        )
    ),
    ParameterDeclaration(
        "drone.ultrasound_freq",
        0,
        "Frequency of the ultrasound: 7 (22.22 Hz) or 8 (25 Hz). Two drones in a room need different ones. 0 keeps it.",
        choices=(0, 7, 8),
    ),
    *ODOMETRY_PARAMETERS,
    *limit_parameters(is_drone=True, tells_battery=True, land_unattended_s=LAND_UNATTENDED_S),
)


class ArdroneBridge(ArDroneNode):
    """Sends commands at a steady rate, publishes navdata, and takes off and lands on request."""

    open_state = CONNECTED
    conditions = (
        ("navdata", DiagnosticStatus.WARN),
        ("emergency", DiagnosticStatus.ERROR),
        ("altitude_max", DiagnosticStatus.WARN),
        ("magnetometer", DiagnosticStatus.WARN),
    )
    _session: ArdroneClientSession | None

    def __init__(self, **options: Any) -> None:
        super().__init__("ardrone_bridge", PARAMETERS, REQUESTS, **options)
        self.create_service(SetBool, "~/set_camera", self._serve_set_camera, callback_group=self._requests.group)

    def set_up(self) -> None:
        self._translation = ArdroneTranslation(read(DroneFrameNames, self.parameters))
        self._drone = self._wanted_drone()
        self._camera = self.parameters["camera"]
        self.set_up_drone(self._drone, self._translation, TOPICS, (FRONT_2, DOWN_2, FRONT, DOWN))
        self.each_second(self._switch_camera)

    def make_transport(self) -> DronePeer:
        get = self.parameters.__getitem__
        ports = get("port"), get("navdata_port"), get("control_port")
        self._link = DronePeer(get("host"), ports, self.connecting_failed, self.wire_log)
        return self._link

    def new_session(self, *common: Any, **more: Any) -> ArdroneClientSession:
        self._camera = self.parameters["camera"]
        more["parameters"] = self.parameters.live(ArdroneClientParameters)
        return ArdroneClientSession(*common, wishes=self._wishes, use_settings=self._use_settings, **more)

    def video(self) -> DroneVideo:
        def version() -> int:
            return 1 if self._session and self._session.settings.is_version_1 else 2

        return DroneVideo(
            lambda: self._link.peer_host,
            self.parameters["video_port"],
            version=version,
            camera=lambda: self._camera,
            is_ready=lambda: self._session is not None and CHANNEL in self._session.settings.settled,
            is_emergency=lambda: self._session is not None and self._session.is_emergency,
            wire_log=self.wire_log,
        )

    # The drone's settings.

    def _wishes(self) -> Sequence[WantedSetting]:
        """Return the settings to write, by the parameters."""
        get, wishes = self.parameters.__getitem__, []
        if get("navdata") == "full":  # only TRUE ends BOOTSTRAP of some drones
            wishes.append(WantedSetting(setting("general:navdata_demo", True), is_required=True))
            wishes.append(WantedSetting(setting("general:navdata_options", full_options())))
        wishes.append(WantedSetting(setting("general:navdata_demo", get("navdata") == "demo"), is_required=True))
        wishes.append(self._channel())
        if get("drone.outdoor") != KEEP:  # before the maxima, which the drone replaces by those for outdoors or indoors
            wishes.append(WantedSetting(setting("control:outdoor", get("drone.outdoor") == "true"), needs_ground=True))
        for name, key, unit in (
            ("max_tilt", "control:euler_angle_max", 1.0),
            ("max_climb", "control:control_vz_max", 1000.0),
            ("max_yaw_rate", "control:control_yaw", 1.0),
            ("altitude_max", "control:altitude_max", 1000.0),
        ):
            if value := get(f"drone.{name}"):
                whole = round(unit * value) if unit > 1 else float(value)
                wishes.append(WantedSetting(setting(key, whole), needs_ground=True))
        if get("drone.hull") != KEEP:
            has_none = get("drone.hull") == "false"
            wishes.append(WantedSetting(setting("control:flight_without_shell", has_none), needs_ground=True))
        if frequency := get("drone.ultrasound_freq"):
            wishes.append(WantedSetting(setting("pic:ultrasound_freq", frequency), needs_ground=True))
        return wishes

    def _wanted_drone(self) -> TiltedDrone:
        """Return the drone with the maxima of the parameters, or the defaults of an AR.Drone."""
        wanted = {name: self.parameters[f"drone.{name}"] for name in ("max_tilt", "max_climb", "max_yaw_rate")}
        return replace(AR_DRONE, **{name: value for name, value in wanted.items() if value})

    def _use_settings(self, settings: DroneSettings) -> None:
        """Fly with the maxima that the drone has answered."""
        drone = settings.maxima(self._drone)
        if drone != self._drone:
            self._drone = drone
            self._pilot.use(drone)
            self._pose.max_turn_rate = drone.max_yaw_rate
        self.report.facts["firmware"] = settings.answered.get(FIRMWARE, "")

    def _switch_camera(self) -> None:
        """Write the setting of a camera that was chosen meanwhile."""
        camera = self.parameters["camera"]
        session = self._session
        if camera != self._camera and session and self.post(partial(session.add_setting, self._channel())):
            self._camera = camera

    def _channel(self) -> WantedSetting:
        return WantedSetting(setting(CHANNEL, CHANNELS[self.parameters["camera"]]))

    # Events of the session, on the link's thread.

    def publish_event(self, message: Navdata | MeasuredNavdata | FlyingReport) -> None:
        """Publish navdata, that between two which are followed only as imu/data, or whether the drone flies."""
        if isinstance(message, FlyingReport):
            self.publish_flying(message.is_flying)
        elif isinstance(message, Navdata):
            self.publish_all(self._topics.made(message, self.now()))
        else:
            self._publish_navdata(message)

    def _publish_navdata(self, received: MeasuredNavdata) -> None:
        now_s, stamp, navdata = self.decided_s, self.now(), received.navdata
        self._translation.last = navdata, received.measured
        self._topics.publish(navdata, stamp)
        self.publish_pose(received.measured, stamp)
        self.report.record_duration("navdata_read_to_published", elapsed_s() - now_s)

    # For the executor.

    def _refusal(self, name: str) -> str | None:
        """Return why a request can't be sent, or None."""
        if self._session and self._session.is_open:
            return None
        return f"{name} can't be sent, because the bridge is not active, or has no link to its drone."

    def _serve_set_camera(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Set the parameter `camera`: true is the downward one."""
        name = DOWN.name if request.data else FRONT.name
        (result,) = self.set_parameters([Parameter("camera", value=name)])
        response.success = result.successful
        response.message = result.reason or f"The video will be that of the {name} camera."
        if self.has_link:
            self._switch_camera()
        return response

    def _report_conditions(self) -> None:
        """Report the session's problems, and facts of the newest navdata, in /diagnostics."""
        super()._report_conditions()
        if session := self._session:
            self.report.facts["flight_state"] = flight_state(session.watch.navdata)
            if session.watch.navdata and (quality := session.watch.navdata.link_quality) is not None:
                self.report.facts["wifi_quality"] = f"{quality:.2f}"


def main() -> int:
    """Run the node."""
    return run(ArdroneBridge)
