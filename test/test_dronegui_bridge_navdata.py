# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge and what the GUI tells of its drone: with the emulated one, which starts as the real one does."""

import contextlib
import json
import signal
import socket
import time
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from dronegui_peer import DroneGuiPeer
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ports import free_port
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating, wait_until
from sensor_msgs.msg import Imu, Range
from std_msgs.msg import Bool, Empty
from std_srvs.srv import SetBool, Trigger
from tf2_msgs.msg import TFMessage
from twists import twist

from drone_bridge.dronegui.topics import POSE_VARIANCES
from drone_bridge.msg import DetectionArray

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
CAPTURE = Path(__file__).parent / "captures" / "gui_to_controller_navdata.jsonl"
LANDED = {"type": "demo", "ctrl_state": 2 << 16, "altitude": 0}


@pytest.fixture
def navdata_port():
    """A UDP port that nobody listens on."""
    return free_port()


@pytest.fixture
def gui(start_child, navdata_port):
    """Return what starts an emulated GUI with its drone, and gives it with its port."""
    guis = []

    def start(*options):
        ports = ("--port", "0", "--navdata-source-port", "0", "--navdata-port", navdata_port)
        guis.append(Process.module("drone_bridge.dronegui.emulator", *ports, *options))
        guis[-1].port = int(guis[-1].wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1])
        return guis[-1]

    yield start
    for started in guis:
        started.end()


@pytest.fixture
def peer(navdata_port, closing):
    """A GUI that does what the test says, and nothing of its own accord."""
    return closing(DroneGuiPeer())


class Navdata:
    """Sends datagrams as the GUI does, from one of this host's addresses."""

    def __init__(self, port, host="127.0.0.1"):
        self._address = ("127.0.0.1", port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))

    def send(self, document):
        datagram = document if isinstance(document, bytes) else json.dumps(document).encode()
        self._socket.sendto(datagram, self._address)

    def close(self):
        self._socket.close()


@pytest.fixture
def navdata(navdata_port, closing):
    return closing(Navdata(navdata_port))


def bridge(gui, navdata_port, **parameters):
    parameters = {"port": gui.port, "navdata_port": navdata_port, "press_time": 0.05, **parameters}
    process = Process.node("dronegui_bridge", **parameters)
    process.wait_for_line("Sending to")  # from then on buttons can be pressed
    return process


def press(ros, name):
    return ros.trigger(f"dronegui_bridge/{name}")


def report_of(reports, wanted):
    return reports.wait(lambda report: wanted(report.status[0], values_of(report)))


# Taking off and landing.


def test_a_new_process_knows_nothing_until_navdata_comes(ros, gui, navdata_port):
    """As after a kill in flight: the drone has stopped talking to the GUI, and reset would stop its motors."""
    drone = gui()
    flying = ros.subscribe(Bool, "flying", LATCHED)
    with bridge(drone, navdata_port) as process:
        process.wait_for_line('whether the drone flies is unknown: choose "Stream Navdata" in the GUI, or look')
        for name, harm in (("takeoff", "reset would stop its motors"), ("land", '"Land" in the GUI lands it')):
            refused = press(ros, name)
            assert (refused.success, "It is not known whether the drone flies" in refused.message) == (False, True)
            assert harm in refused.message
            assert 'Choose "Stream Navdata" in the GUI, or look at the drone and call assume_flying.' in refused.message
        assert len(flying) == 0
        drone.send(signal.SIGUSR1)  # "Stream Navdata"
        assert not flying.wait().data
        assert press(ros, "takeoff").success
        flying.wait(lambda message: message.data)
    assert drone.count_lines("reset") == 0


def test_a_drone_behind_a_fresh_gui_takes_off_and_lands(ros, gui, navdata_port):
    drone = gui()
    flying = ros.subscribe(Bool, "flying", LATCHED)
    with bridge(drone, navdata_port):
        told = ros.call(SetBool, "dronegui_bridge/assume_flying", SetBool.Request(data=False))
        assert (told.success, "takeoff will press reset" in told.message) == (True, True)
        answer = press(ros, "takeoff")
        assert (answer.success, answer.message) == (True, "take_off was pressed and released, and the drone takes off.")
        drone.wait_for_line("^reset: the GUI asks the drone for navdata")
        flying.wait(lambda message: message.data)
        refused = press(ros, "takeoff")
        assert (refused.success, "as its navdata says" in refused.message) == (False, True)
        refused = ros.call(SetBool, "dronegui_bridge/assume_flying", SetBool.Request(data=False))
        assert (refused.success, "Nothing needs to be assumed" in refused.message) == (False, True)
        drone.wait_for_line("^taking off -> flying")
        answer = press(ros, "land")
        assert (answer.success, answer.message) == (True, "take_off was pressed and released, and the drone lands.")
        assert press(ros, "land").message == "The drone is landing already."
        drone.wait_for_line("^landing -> landed")
        flying.wait(lambda message: not message.data)
        refused = press(ros, "land")
        assert (refused.success, "on the ground, as its navdata says" in refused.message) == (False, True)
    assert drone.count_lines("landed -> taking off") == 1


def test_a_gui_that_was_started_again_in_flight_is_not_asked_to_land_a_drone_that_stands(ros, gui, navdata_port):
    """It does not know that the drone flew, and its own Land has landed it: the press of land would be a take-off."""
    drone = gui("--bootstrapped")
    with bridge(drone, navdata_port, bootstrap=False, initially="landed") as process:
        assert press(ros, "takeoff").success
        drone.wait_for_line("^taking off -> flying")
        drone.send(signal.SIGURG)
        process.wait_for_line("Whether the drone flies is not known any more: ")
        drone.send(signal.SIGURG)
        drone.wait_for_line("^the GUI is started again")
        drone.send(signal.SIGUSR2)  # "Land"
        drone.wait_for_line("^landing -> landed")
        for name in ("land", "takeoff", "reset"):
            refused = press(ros, name)
            assert (refused.success, '"Land" in the GUI lands it' in refused.message) == (False, True)
        drone.send(signal.SIGUSR1)  # "Stream Navdata"
        wait_until(lambda: press(ros, "takeoff").success, "what makes it known")
    assert drone.count_lines("landed -> taking off") == 2


def test_reset_is_not_pressed_where_navdata_goes_to_somebody_else(ros, peer, navdata_port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", navdata_port))
        with bridge(peer, navdata_port, initially="landed") as process:
            process.wait_for_line(rf"Can't listen on 127\.0\.0\.1:{navdata_port}: Address already in use")
            answer = press(ros, "takeoff")
            assert (answer.success, "can't be listened on" in answer.message) == (False, True)
            assert not any(packet.presses("reset") for packet in peer.packets)
            taken.close()
            process.wait_for_line(rf"Listening for navdata on 127\.0\.0\.1:{navdata_port}")


def test_an_emergency_is_an_error_until_reset_is_pressed_again(ros, gui, navdata_port):
    drone = gui("--bootstrapped")
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(drone, navdata_port, confirm_timeout=0.5) as process:
        assert press(ros, "takeoff").success
        drone.wait_for_line("^taking off -> flying")
        assert press(ros, "reset").success
        drone.wait_for_line("^flying -> emergency")
        report_of(
            reports,
            lambda status, _: status.level == DiagnosticStatus.ERROR and "motors are off" in status.message,
        )
        process.wait_for_line("motors are off, as after an emergency")
        drone.wait_for_line("emergency, .* z=0.00")
        assert "does not take off: its navdata says default" in press(ros, "takeoff").message
        assert press(ros, "reset").success
        drone.wait_for_line("^emergency -> landed")
        report_of(reports, lambda _, values: values.get("flight state") == "landed")
        assert press(ros, "takeoff").success


# Topics.


def test_navdata_becomes_topics(ros, gui, navdata_port):
    drone = gui("--bootstrapped")
    topics = {"imu/data": Imu, "altitude": Range, "odom": Odometry, "detections": DetectionArray, "/tf": TFMessage}
    inboxes = {topic: ros.subscribe(kind, topic) for topic, kind in topics.items()}
    static = ros.subscribe(TFMessage, "/tf_static", LATCHED)
    names = {"frame_prefix": "d1/", "odom_frame": "start"}
    with bridge(drone, navdata_port, **names):
        assert press(ros, "takeoff").success
        assert inboxes["altitude"].wait(lambda message: message.range > 0.9).header.frame_id == "d1/altimeter_link"
        assert len(inboxes["detections"].wait(lambda message: message.detections).detections) == 1
        publisher = ros.publisher(Twist, "cmd_vel")
        with repeating(lambda _: publisher.publish(twist(forward=1.5))):
            odometry = inboxes["odom"].wait(lambda message: message.twist.twist.linear.x > 1.0)
        assert (odometry.header.frame_id, odometry.child_frame_id) == ("d1/start", "d1/base_link")
        assert odometry.pose.pose.position.x > 0.3
        assert odometry.pose.pose.position.z == pytest.approx(1.0, abs=0.2)
        assert odometry.pose.covariance[0] > POSE_VARIANCES[0]
        assert inboxes["imu/data"].wait(lambda message: message.orientation.y > 0.02)  # the nose is down
        moved = inboxes["/tf"].wait(lambda message: message.transforms[0].header.stamp == odometry.header.stamp)
        assert moved.transforms[0].transform.translation.x == odometry.pose.pose.position.x
        # One of another test's bridge may come as well.
        static.wait(lambda message: message.transforms[0].child_frame_id == "d1/altimeter_link")


def test_a_hung_gui_counts_as_silent_until_it_resumes(ros, gui, navdata_port):
    """Its liveness is that of its navdata: packets are taken by the system, whether it reads them or not."""
    drone = gui("--bootstrapped")
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    commands = ros.publisher(Twist, "cmd_vel", subscribers=0)
    with bridge(drone, navdata_port, silence_warning=1.0) as process:
        report_of(reports, lambda status, _: status.level == DiagnosticStatus.OK)
        drone.send(signal.SIGSTOP)
        try:
            report_of(reports, lambda status, _: "silent for" in status.message and status.level > DiagnosticStatus.OK)
            process.wait_for_line(rf"127\.0\.0\.1:{drone.port} is connected but has been silent for \d+ s\.")

            def is_counted(report):
                commands.publish(Twist())
                return int(values_of(report)["undelivered commands"]) > 1

            reports.wait(is_counted)
            line = r"Commands on cmd_vel reach no vehicle: 127\.0\.0\.1:\d+ has been silent for \d+ s\."
            process.wait_for_line(line)
            refused = press(ros, "land")
            assert (refused.success, drone.count_lines("landing")) == (False, 0)
        finally:
            drone.send(signal.SIGCONT)
        process.wait_for_line("is heard again")
        report_of(reports, lambda status, _: status.level == DiagnosticStatus.OK)


@contextlib.contextmanager
def stopped(process):
    """Have a process stand still for longer than navdata and a call are believed to be new, and go on."""
    process.send(signal.SIGSTOP)
    try:
        yield
        time.sleep(1.0)
    finally:
        process.send(signal.SIGCONT)


def test_a_bridge_that_stood_still_blames_nobody_and_takes_off_for_no_old_call(ros, gui, navdata_port):
    drone = gui("--bootstrapped")
    flying = ros.subscribe(Bool, "flying", LATCHED)
    with bridge(drone, navdata_port, navdata_timeout=0.5) as process:
        assert not flying.wait().data
        takeoff = ros.node.create_client(Trigger, "dronegui_bridge/takeoff")
        assert takeoff.wait_for_service(60)
        with stopped(process):
            called = takeoff.call_async(Trigger.Request())
        wait_until(called.done, "an answer")
        assert (called.result().success, "has just stood still" in called.result().message) == (False, True)
        wait_until(lambda: press(ros, "takeoff").success, "a call that is new")
        assert process.count_lines("No navdata") == 0


def test_a_reset_from_before_the_bridge_stood_still_stops_no_motors(ros, gui, navdata_port):
    """Neither by the service nor by the topic; and a drone that is still known to fly lands when it is called anew."""
    drone = gui("--bootstrapped")
    with bridge(drone, navdata_port) as process:
        assert press(ros, "takeoff").success
        drone.wait_for_line("^taking off -> flying")
        reset = ros.node.create_client(Trigger, "dronegui_bridge/reset")
        topic = ros.publisher(Empty, "reset")
        assert reset.wait_for_service(60)
        with stopped(process):
            called = reset.call_async(Trigger.Request())
            topic.publish(Empty())
        wait_until(called.done, "an answer")
        assert (called.result().success, "has just stood still" in called.result().message) == (False, True)
        process.wait_for_line("A message on reset was refused: This process has just stood still")
        wait_until(lambda: press(ros, "land").success, "a landing")
        drone.wait_for_line("^landing -> landed")
        assert drone.count_lines("emergency") == 0


# What a GUI must not send, and who must not send at all.


def test_garbage_and_strangers_are_counted_and_change_nothing(ros, peer, navdata, navdata_port):
    stranger = Navdata(navdata_port, "127.0.0.2")
    reports, heights = ros.subscribe(DiagnosticArray, "/diagnostics"), ros.subscribe(Range, "altitude")
    try:
        with bridge(peer, navdata_port) as process:
            process.wait_for_line("Listening for navdata")
            for number in range(20):
                stranger.send({**LANDED, "ctrl_state": 3 << 16, "altitude": 9000 + number})
            garbage = (b"", b"\xff" * 60000, b"[" * 8000, {"type": "demo", "altitude": "high"}, {"type": 5}, b"{}x")
            for document in garbage:
                navdata.send(document)
            for number in range(20):
                navdata.send({"type": f"kind {number}" * 100, "value": number})
            navdata.send({"checksum": 1})
            report_of(reports, lambda _, values: values.get("other navdata") == "21")  # no buffer holds all at once
            for datagram in CAPTURE.read_bytes().splitlines():
                navdata.send(datagram)

            def is_counted(_, values):
                return values["navdata"] == "60"

            values = values_of(report_of(reports, is_counted))
            assert values["refused navdata"] == "20"
            assert values["rejected input"] == str(len(garbage))
            assert values["detections"] == "12"
            assert len(values["other navdata types"]) < 300
            assert values["flight state"] == "landed"
            process.wait_for_line(r"Navdata of 127\.0\.0\.2:\d+ was refused: the GUI is at 127\.0\.0\.1")
            assert process.count_lines("Navdata of .* was refused") == 1
            start = len(peer.packets)
            peer.wait(since=start + 5)  # packets go on
            assert heights.wait().range < 9
    finally:
        stranger.close()
