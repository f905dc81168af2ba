# SPDX-License-Identifier: Apache-2.0
"""Process tests of robot_server, between real drivers and real DDS."""

import contextlib
import socket
import subprocess
import sys

import pytest
from networks import two_machines
from ports import free_port
from processes import Process, executable
from robot_driver import RobotDriver
from ros_session import wait_until
from sensor_msgs.msg import BatteryState, Temperature
from std_msgs.msg import Bool

from drone_bridge.msg import SensorValue
from drone_bridge.robot import codec

HEADLIGHT, REAR, TRACKS = 0, 1, 2  # in the list of ARGUMENTS
SENSORS = "['battery_state','temperature/left_motor','current/left_motor','motor_pwm/m1=left PWM']"
ARGUMENTS = {
    "port": 0,
    "robot_name": "shelly",
    "wheel_separation": 0.4,
    "max_wheel_speed": 2.0,
    "lights": "['headlight','Rear light']",
    "sensors": SENSORS,
    "full_voltage": 24.0,
    "command_timeout": 30.0,  # a stalled test must not make the driver count as silent
    "driver_timeout": 0.0,
    "source_timeout": 3600.0,
}
LISTENING = r"drivers on 127\.0\.0\.1:(\d+)"


@contextlib.contextmanager
def serving(**parameters):
    """Server process, and the port for drivers."""
    parameters = {**ARGUMENTS, "discovery_port": free_port(), **parameters}
    with Process.node("robot_server", **parameters) as server:
        server.port = int(server.wait_for_line(LISTENING)[1])
        server.discovery_port = parameters["discovery_port"]
        yield server


@pytest.fixture
def connect(closing):
    return lambda server, name=None: closing(RobotDriver(server.port, name))


def hear(driver, sensor, publisher, message):
    """Publish until the driver receives a value of the sensor. The first messages may precede discovery."""
    before = len(driver.events)

    def values():
        publisher.publish(message)
        driver.settle()
        updates = [event for event in driver.events[before:] if isinstance(event, codec.SensorUpdate)]
        return [reading for update in updates for reading in update.readings if reading.sensor == sensor]

    return wait_until(values, f"a value of sensor {sensor}", period_s=0.1)[-1].value


def test_lights_and_values_pass_between_a_driver_and_topics(connect, ros):
    with serving() as server:
        driver = connect(server, "alice")
        head, rear = ros.subscribe(Bool, "light"), ros.subscribe(Bool, "light/rear_light")
        driver.bind(HEADLIGHT)
        driver.bind(REAR)

        def switched():
            driver.send(codec.LightUpdate(HEADLIGHT, True), codec.LightUpdate(REAR, False))
            return len(head) and len(rear)

        wait_until(switched, "both lights", period_s=0.1)
        assert head.wait().data
        assert not rear.wait().data
        # Sensors: none has a value yet, and the right motor is missing.
        assert [sensor.type for sensor in driver.query_sensors().sensors] == [0, 0, 0, 0, 0]
        for number, topic, message, value in (
            (0, "battery_state", BatteryState(voltage=24.125), 24125),
            (1, "temperature/left_motor", Temperature(temperature=-3.25), -325),
            (2, "current/left_motor", SensorValue(value=1.5), 1500),
            (3, "motor_pwm/m1", SensorValue(value=-0.5), -1024),
        ):
            assert hear(driver, number, ros.publisher(type(message), topic), message) == value
        battery = driver.query_sensors().sensors[0]
        assert battery == codec.Sensor(codec.SensorType.BATTERY, "battery", 24125, 24000)


# Like robotd's Java driver: the request uses the interface of the default route, and the connection the reply's source.
# Repeated each second, since any datagram may be lost.
FIND = """
import socket, sys
own, group, discovery_port, port, seconds = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.settimeout(1.0)
    asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
    for _ in range(int(seconds)):
        asking.sendto(b"find robots", (group, int(discovery_port)))
        try:
            name, source = asking.recvfrom(256)
            break
        except TimeoutError:
            pass
    else:
        sys.exit("nobody")
with socket.create_connection((source[0], int(port)), float(seconds)) as driving:
    driving.sendall(bytes.fromhex("000002"))
    print(name.decode(), driving.recv(3).hex())
"""
FOUND = ["shelly", "000a07"]  # and the start of its response to a query: the list of sensors


def test_local_drivers_discover_the_robot_and_others_only_if_configured():
    def find(machine, address, seconds):
        arguments = (address, "238.160.102.2", 25601, 25600, seconds)
        command = machine.command(sys.executable, "-c", FIND, *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    parameters = ("robot_name:=shelly", "lights:=['none']", "sensors:=['none']")
    to_others = ("discovery_interface:=0.0.0.0", "host:=0.0.0.0")
    with two_machines() as (here, elsewhere):

        def serve(*more):
            options = [part for parameter in (*parameters, *more) for part in ("-p", parameter)]
            return Process(*here.command(executable("robot_server"), "--ros-args", *options))

        with serve() as server:
            server.wait_for_line(LISTENING)
            found = find(here, here.address, 10)
            assert found.stdout.split() == FOUND, found.stderr
            assert find(here, "127.0.0.1", 10).stdout.split() == FOUND
            assert find(elsewhere, elsewhere.address, 1).stderr.strip() == "nobody"
            assert find(here, here.address, 10).stdout.split() == FOUND  # which is still there
        with serve(*to_others) as server:
            server.wait_for_line("drivers on 0.0.0.0:")
            found = find(elsewhere, elsewhere.address, 10)
            assert found.stdout.split() == FOUND, found.stderr


def test_beside_robotd_the_server_runs_without_discovery(connect):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as robotd:  # which does not share its port
        robotd.bind(("0.0.0.0", 0))
        with serving(discovery_port=robotd.getsockname()[1]) as server:
            server.wait_for_line(r"WARN.*Discovery.*in use by.*discovery_port:=")
            connect(server, "alice").bind(TRACKS)
