# SPDX-License-Identifier: Apache-2.0
"""The emulated AR.Drone in virtual time: start, settings, silence, emergency, and the differences of firmwares."""

import math

import pytest
from repository import CAPTURES

from drone_bridge.ar_drone.flight import ArDroneFlight, FlightPhase
from drone_bridge.ardrone import KIND, units
from drone_bridge.ardrone.codec import (
    PROGRESSIVE,
    ClientConnection,
    Config,
    ConfigIds,
    Control,
    ControlMode,
    FlatTrim,
    FlightState,
    OtherCommand,
    Pcmd,
    Ref,
    State,
    Tag,
    WatchdogReset,
    read_settings,
    setting,
)
from drone_bridge.ardrone.codec.navdata import read_navdata
from drone_bridge.ardrone.vehicle.device import LOST_S, MOST_REFUSALS, EmulatedArdrone, FirmwareBehaviour
from drone_bridge.motion.tilted_drone import Shares

STEP_S = 0.02
CLEAR = Control(ControlMode.CLEAR_ACKNOWLEDGEMENT)


class Client:
    """A client that repeats its commands, and reads navdata."""

    def __init__(self, drone=None, **behaviour):
        self.drone = drone or EmulatedArdrone(behaviour=FirmwareBehaviour(**behaviour))
        self.connection, self.now_s, self.navdata = ClientConnection(), 10.0, None
        self.received = 0

    def ask(self):
        self.drone.ask(self, self.now_s)
        return self

    def send(self, *commands):
        self.drone.receive(self.connection.send(*commands), self.now_s)
        return self

    def run(self, seconds, *commands):
        """Repeat commands, or be silent without any."""
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            if commands:
                self.send(*commands)
            self.drone.tick(self.now_s)
            self.poll()
        return self.navdata

    def poll(self):
        due = self.drone.navdata(self.now_s)
        if due and self in due[1]:
            self.connection.receive_data(due[0])
            self.navdata, self.received = self.connection.next_event(), self.received + 1

    def flying(self):
        self.ask().send(setting("general:navdata_demo", True))
        self.run(0.2, CLEAR)
        self.run(6.0, WatchdogReset(), Pcmd(), Ref(True))
        assert self.navdata.demo.flight_state is FlightState.HOVERING
        return self


def test_a_fresh_drone_sends_only_its_state_until_it_is_told_the_mode():
    client = Client()
    assert client.run(0.5) is None  # nobody has asked
    client.ask()
    navdata = client.run(0.5, WatchdogReset())
    assert navdata.has(State.BOOTSTRAP)
    assert navdata.options == ()
    client.send(setting("general:navdata_demo", True))
    navdata = client.run(0.2, Pcmd())
    assert navdata.has(State.COMMAND_ACKNOWLEDGED)
    assert not navdata.has(State.BOOTSTRAP)
    assert navdata.has(State.DEMO_ONLY)
    assert navdata.demo.flight_state is FlightState.LANDED
    assert not client.run(0.2, CLEAR).has(State.COMMAND_ACKNOWLEDGED)


@pytest.fixture
def flying():
    return Client().flying()


DEMO, OPTIONS = "general:navdata_demo", "general:navdata_options"
MASK = 1 << Tag.MAGNETOMETER | 1 << Tag.WIFI


@pytest.mark.parametrize(
    ("version", "settings", "tags"),
    [
        (2, {DEMO: "FALSE"}, set(range(28))),
        (1, {DEMO: "no", OPTIONS: str(MASK)}, set(range(21))),
        (2, {DEMO: "TRUE"}, {Tag.DEMO, Tag.VISION_DETECT}),
        (2, {DEMO: "true", OPTIONS: str(MASK)}, {Tag.DEMO, Tag.VISION_DETECT, Tag.MAGNETOMETER, Tag.WIFI}),
        (2, {DEMO: "T", OPTIONS: "x"}, {Tag.DEMO, Tag.VISION_DETECT}),
    ],
)
def test_options_are_those_of_mode_mask_and_version(version, settings, tags):
    client = Client(version=version).ask().send(*(Config(*each) for each in settings.items()))
    navdata = client.run(0.5, Pcmd())
    assert set(dict(navdata.options)) == tags
    assert client.received == pytest.approx(25 if len(tags) > 5 else 8, abs=1)  # one per step; a full drone sends 200


@pytest.mark.parametrize(("version", "captured"), [(2, "node_navdata.bin"), (1, "arbdrone_flying.bin")])
def test_full_navdata_has_the_layout_of_a_real_drone(version, captured):
    navdata = Client(version=version).ask().send(setting(DEMO, False)).run(0.5, Pcmd())
    real = read_navdata((CAPTURES / "ardrone" / captured).read_bytes())
    assert [(tag, len(data)) for tag, data in navdata.options] == [(tag, len(data)) for tag, data in real.options]
    assert navdata.physical.acceleration[2] == pytest.approx(-1000)
    assert navdata.ultrasound == 243
    assert navdata.demo.altitude == 0


@pytest.mark.parametrize("demo_ends_bootstrap", [True, False])
def test_false_ends_bootstrap_or_only_true(demo_ends_bootstrap):
    client = Client(demo_ends_bootstrap=demo_ends_bootstrap).ask().send(setting(DEMO, False))
    assert client.run(0.2, Pcmd()).has(State.BOOTSTRAP) == demo_ends_bootstrap
    client.send(setting(DEMO, True), setting(DEMO, False))
    assert len(client.run(0.2, Pcmd()).options) == 28


def test_the_magnetic_field_is_turned_with_the_body_and_points_down(flying):
    flying.send(setting(DEMO, False))
    before = flying.run(0.1, Pcmd()).magnetometer
    after = flying.run(1.0, Pcmd(PROGRESSIVE, yaw=1.0), Ref(True))
    x, y, z = units.magnetic_field(after.magnetometer)
    assert units.magnetic_field(before) == pytest.approx((2e-5, 0.0, -4.3e-5), abs=1e-6)
    assert math.atan2(-y, x) == pytest.approx(units.measurement(after).yaw, abs=0.02)
    assert z == pytest.approx(-4.3e-5, abs=1e-6)


def test_takeoff_is_a_level_and_flying_comes_before_the_flight_state():
    client = Client().ask().send(setting("general:navdata_demo", True))
    client.run(0.1, CLEAR)
    states = [client.run(STEP_S, Ref(True)) for _ in range(300)]
    first = next(each for each in states if each.has(State.FLYING))
    assert first.demo.flight_state is FlightState.LANDED
    assert states[-1].has(State.START_BUTTON)
    assert states[-1].demo.altitude > 900
    assert client.run(5.0, Ref(False)).demo.flight_state is FlightState.LANDED


@pytest.mark.parametrize("charge", [0.2, 0.1])
def test_no_takeoff_with_a_low_battery(charge):
    client = Client(EmulatedArdrone(charge=charge)).ask().send(setting("general:navdata_demo", True))
    navdata = client.run(3.0, Ref(True))
    assert navdata.has(State.BATTERY_LOW)
    assert not navdata.is_airborne


@pytest.mark.parametrize(("command", "sign"), [(Pcmd(PROGRESSIVE, pitch=-0.5), 1), (Pcmd(PROGRESSIVE, pitch=0.5), -1)])
def test_pitch_goes_backward_and_lowers_the_nose_forward(flying, command, sign):
    navdata = flying.run(1.5, command)
    assert math.copysign(1, navdata.demo.vx) == sign
    assert math.copysign(1, navdata.demo.theta) == -sign
    measured = units.measurement(navdata)
    assert math.copysign(1, measured.velocity.forward) == sign
    assert math.copysign(1, measured.pitch) == sign


def test_roll_goes_right_yaw_turns_right_and_gaz_climbs(flying):
    navdata = flying.run(1.0, Pcmd(PROGRESSIVE, 0.5, 0.0, 0.3, 0.5))
    assert navdata.demo.vy > 100
    assert navdata.demo.phi > 1000
    assert navdata.demo.psi > 10_000
    measured = units.measurement(navdata)
    assert measured.velocity.left < 0 < measured.roll
    assert measured.yaw < 0


# Silence.


def test_the_emulated_drone_has_the_stated_watchdog():
    assert FirmwareBehaviour().watchdog_s == KIND.watchdog_s


@pytest.mark.parametrize("watchdog_s", [0.05, 0.25])
def test_without_commands_it_hovers_and_says_so(watchdog_s):
    client = Client(watchdog_s=watchdog_s).flying()
    client.run(1.0, Pcmd(PROGRESSIVE, pitch=-0.5), Ref(True))
    assert not client.drone.flight.is_hovering
    client.run(watchdog_s + 2 * STEP_S)
    assert client.drone.flight.is_hovering
    navdata = client.run(0.3, Pcmd(PROGRESSIVE, pitch=-0.5), Ref(True))
    assert navdata.has(State.WATCHDOG)  # until it is acknowledged
    assert not client.drone.flight.is_hovering
    assert not client.run(0.3, WatchdogReset()).has(State.WATCHDOG)


@pytest.mark.parametrize("lands", [True, False])
def test_a_lost_client_gets_no_navdata_and_the_drone_stays_or_lands(lands):
    client = Client(lands_when_lost=lands).flying()
    client.run(LOST_S + 0.1)
    received = client.received
    client.run(6.0)
    assert client.received == received
    assert (client.drone.flight.phase is FlightPhase.LANDED) == lands
    client.ask()
    client.run(0.2)
    assert client.navdata.has(State.COMMUNICATION_LOST)
    assert client.navdata.sequence < 10


@pytest.mark.parametrize("any_number", [True, False])
def test_after_a_loss_a_number_may_be_low_or_not(any_number):
    first = Client(any_number_after_loss=any_number).flying()
    second = Client(first.drone)
    second.now_s = first.now_s
    second.connection.send(Pcmd())  # so that its number is not 1
    second.run(LOST_S + 0.1)
    second.run(0.1, Pcmd(PROGRESSIVE, 1.0), Ref(True))
    assert first.drone.flight.is_hovering != any_number


@pytest.mark.parametrize("newest_only", [True, False])
def test_a_second_asker_silences_the_first_or_not(newest_only):
    first = Client(serves_newest_only=newest_only).flying()
    second = Client(first.drone)
    second.now_s = first.now_s
    second.ask()
    received = first.received
    first.run(0.5, Pcmd(), Ref(True))
    assert (first.received == received) == newest_only


# Emergency.


def test_the_emergency_toggles_at_each_press(flying):
    navdata = flying.run(0.1, Ref(False, True))
    assert navdata.has(State.EMERGENCY)
    assert navdata.has(State.USER_EMERGENCY)
    assert not navdata.is_airborne
    assert flying.run(2.0, Ref(False, True)).has(State.EMERGENCY)  # one press, however long
    flying.run(0.1, Ref())
    navdata = flying.run(0.1, Ref(False, True))
    assert not navdata.has(State.EMERGENCY | State.USER_EMERGENCY)
    assert navdata.demo.flight_state is FlightState.LANDED


@pytest.mark.parametrize("on_ground", [True, False])
def test_a_press_on_the_ground_enters_an_emergency_or_not(on_ground):
    client = Client(emergency_on_ground=on_ground).ask()
    assert client.run(0.2, Ref(False, True)).has(State.EMERGENCY) == on_ground


@pytest.mark.parametrize("ignored", [True, False])
def test_the_level_may_be_ignored_while_the_emergency_is_pressed(ignored):
    client = Client(emergency_on_ground=False, fly_ignored_while_pressed=ignored).ask()
    assert client.run(0.5, Ref(True, True)).is_airborne != ignored


@pytest.mark.parametrize("again", [True, False])
def test_after_a_landing_of_its_own_it_takes_off_again_or_not(again):
    client = Client(takes_off_again=again).flying()
    client.drone.land_itself()
    client.run(10.0, Pcmd(), Ref(True))
    assert client.drone.flight.is_flying == again


def test_a_fault_stops_the_motors_and_is_named(flying):
    flying.drone.enter_emergency(State.CUTOUT)
    navdata = flying.run(0.2, Pcmd(), Ref(True))
    assert navdata.has(State.CUTOUT)
    assert navdata.has(State.EMERGENCY)
    assert flying.run(3.0, Pcmd(), Ref(True)).demo.altitude == 0


# Settings.


@pytest.mark.parametrize("acknowledged", [True, False])
def test_refused_settings_are_acknowledged_or_not(acknowledged):
    client = Client(acknowledges_refused=acknowledged).ask()
    client.send(Config("no:such_key", "1"))
    assert client.run(0.2, Pcmd()).has(State.COMMAND_ACKNOWLEDGED) == acknowledged
    assert "no:such_key" not in read_settings(client.drone.configuration())


def test_a_codec_needs_ids_of_the_client_directly_before_it():
    client = Client().ask()
    settings = client.drone.settings
    before = settings["video:video_codec"]
    client.send(setting("video:video_codec", 0x83))
    assert settings["video:video_codec"] == before
    ids = ConfigIds("0000000a", "0000000b", "0000000c")
    own = zip(("session", "profile", "application"), ("0000000a", "0000000b", "0000000c"), strict=True)
    for name, value in own:
        client.send(Config(f"custom:{name}_id", value))
    client.send(ids, Pcmd(), setting("video:video_codec", 0x83))
    assert settings["video:video_codec"] == before
    client.send(ids, setting("video:video_codec", 0x83))
    assert settings["video:video_codec"] == str(0x83)
    older = Client(version=1).ask().send(setting("video:video_codec", 0x40))
    assert older.drone.settings["video:video_codec"] == str(0x40)


def test_ids_that_are_not_the_present_ones_are_acknowledged_and_dropped():
    client = Client().ask()
    ids = ConfigIds("0000000a", "0000000b", "0000000c")
    for key in ("video:video_codec", "detect:detect_type"):
        before = client.drone.settings[key]
        client.send(ids, setting(key, 5))
        assert client.run(0.2, Pcmd()).has(State.COMMAND_ACKNOWLEDGED)
        assert client.drone.settings[key] == before
    client.send(ids, Config("custom:session_id", "0000000a"))
    assert client.drone.settings["custom:session_id"] == "0000000a"
    client.send(Config("custom:session_id", "-all"))
    assert client.drone.settings["custom:session_id"] == "00000000"


@pytest.mark.parametrize(
    ("key", "value", "answer"),
    [
        ("detect:detect_type", "12", "12"),
        ("leds:leds_anim", "3,1073741824,2", "3,1073741824,2"),
        ("control:flight_anim", "18,15", "18,15"),
        ("control:hovering_range", "500", "500"),
        ("network:owner_mac", "01:02:03:04:05:06", "01:02:03:04:05:06"),
        ("custom:profile_desc", "mine", "mine"),
        ("control:control_yaw", "2.5", "2.5000000e+00"),
        ("control:outdoor", "true", "TRUE"),
        ("video:bitrate", "x", "x"),
    ],
)
def test_settings_are_answered_in_the_drones_own_format(key, value, answer):
    client = Client(version=1).ask().send(Config(key, value))
    assert read_settings(client.drone.configuration())[key] == answer


def test_maxima_are_kept_within_the_drones_own_range_and_flown(flying):
    flying.send(setting("control:euler_angle_max", 0.9), setting("control:altitude_max", 2000))
    assert read_settings(flying.drone.configuration())["control:euler_angle_max"] == "5.2000000e-01"
    flying.run(10.0, Pcmd(PROGRESSIVE, gaz=1.0), Ref(True))
    assert flying.drone.flight.height == pytest.approx(2.0, abs=0.05)


def test_outdoors_and_indoors_have_maxima_of_their_own():
    client = Client().ask()
    for value, tilt, climb in ((True, 0.349, 1.0), (False, 0.2094, 0.7)):
        client.send(setting("control:euler_angle_max", 0.1), setting("control:outdoor", value))
        assert (client.drone.flight.max_tilt, client.drone.flight.max_climb) == (tilt, climb)


def test_a_flat_trim_on_the_ground_ends_the_drift():
    def drift(trim):
        flight = ArDroneFlight()
        flight.level_error = (math.radians(3), 0.0)
        client = Client(EmulatedArdrone(flight)).ask()
        if trim:
            client.send(FlatTrim())
        client.flying()
        before = flight.position.copy()
        client.run(2.0, Pcmd(PROGRESSIVE), Ref(True))
        return math.hypot(*(flight.position - before)[:2])

    assert drift(trim=True) < 0.1 < drift(trim=False)


def test_a_flat_trim_in_the_air_is_ignored(flying):
    flying.drone.flight.level_error = (0.05, 0.0)
    flying.send(FlatTrim())
    assert flying.drone.flight.level_error == (0.05, 0.0)


def test_the_configuration_is_sent_on_request_with_an_acknowledgement():
    client = Client().ask().send(Control(ControlMode.GET_CONFIGURATION))
    assert client.drone.texts_due == 1
    assert client.run(0.2, Pcmd()).has(State.COMMAND_ACKNOWLEDGED)
    assert read_settings(client.drone.configuration())["general:num_version_soft"] == "2.4.8"
    assert read_settings(Client(version=1).drone.configuration())["general:num_version_soft"] == "1.11.5"


def test_units_of_commands_are_forward_left_up_and_turning_left():
    assert units.command(Shares(0.1, 0.2, 0.3, 0.4)) == Pcmd(PROGRESSIVE, 0.3, -0.2, 0.1, -0.4)
    assert units.command(None) == Pcmd()


#: By the guides: each command besides those that this file's other tests execute, and a setting that flies a figure.
OTHERS = [OtherCommand("ANIM", ("16", "15")), OtherCommand("CALIB", ("0",)), OtherCommand("LED", ("0", "0", "1")),
          Config("control:flight_anim", "16,15")]  # fmt: skip


@pytest.mark.parametrize("command", OTHERS)
def test_what_the_drone_does_not_execute_is_logged_once(command):
    drone = Client().flying().drone
    client = Client(drone).ask()
    drone.events.clear()
    client.send(WatchdogReset()).send(command).send(command)
    assert sum("is not executed" in each for each in drone.events) == 1


def test_a_client_cannot_fill_the_log_of_a_drone():
    client = Client().ask()
    for number in range(100):
        client.send(OtherCommand(chr(65 + number % 26) * (1 + number // 26), ()))
    assert 0 < sum("is not executed" in each for each in client.drone.events) <= MOST_REFUSALS
