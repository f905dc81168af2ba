# SPDX-License-Identifier: Apache-2.0
"""ClientSession of ardrone_bridge against an emulated drone in virtual time: connecting, settings, requests."""

import pytest
from ardrone_talk import DEMO, Talk
from session_talk import notes

from drone_bridge.ar_drone.flight import FlightPhase
from drone_bridge.ardrone import codec
from drone_bridge.ardrone.session.client import ASKING, CONNECTED, SILENCES, MeasuredNavdata
from drone_bridge.ardrone.session.navdata_watch import LATE
from drone_bridge.ardrone.session.packets import COPIES
from drone_bridge.ardrone.session.requests import TRIMS
from drone_bridge.ardrone.session.settings import MOST_TRIES, WantedSetting
from drone_bridge.ardrone.vehicle.device import EmulatedArdrone, FirmwareBehaviour
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.continuous_pose import POSE_RESTARTS, ContinuousPose
from drone_bridge.session.session import FINAL_REPEATS, Landing, Publish, Send

TILT = WantedSetting(codec.setting("control:euler_angle_max", 0.3), needs_ground=True)
FORWARD = Shares(pitch=0.5)


@pytest.fixture
def talk():
    """Return a talk with a drone that is connected, on the ground."""
    return Talk().connected()


@pytest.fixture
def flying():
    return Talk().flying()


def without_control_port(*wishes):
    """Return a talk whose drone accepts connections for settings, and sends none."""
    talk = Talk(*wishes)
    talk.has_control_port = False
    return talk.open()


def test_a_drone_that_was_just_switched_on_is_connected_and_told_the_mode(talk):
    assert talk.session.state == CONNECTED
    assert talk.drone.is_bootstrapped
    assert not talk.drone.is_acknowledging
    assert not talk.drone.state & codec.State.WATCHDOG
    assert talk.session.watch.navdata.demo
    assert talk.flights() == [False]


def test_before_navdata_it_hovers_and_says_nothing_about_flying():
    talk = Talk()
    talk.is_linked = False
    talk.open()
    talk.run(1.0)
    assert {type(each) for each in talk.sent()} == {codec.Pcmd, codec.WatchdogReset}
    assert all(not each.flags for each in talk.sent() if isinstance(each, codec.Pcmd))
    assert sum(isinstance(each, Send) and each.to == codec.NAVDATA for each in talk.actions) >= 5
    assert talk.session.undeliverable(talk.now_s)


def test_commands_are_sent_at_the_rate(talk):
    actions = talk.run(2.0)
    assert sum(isinstance(each, codec.Pcmd) for each in talk.sent(actions)) == pytest.approx(60, abs=2)


def test_the_first_packet_begins_with_number_1():
    talk = Talk()
    talk.is_linked = False
    talk.open()
    talk.run(0.3)
    first = [each.data.split(b"\r")[0] for each in talk.actions if isinstance(each, Send) and each.to == codec.COMMANDS]
    numbers = [int(data.partition(b"=")[2].split(b",")[0]) for data in first]
    assert numbers[:COPIES] == [1] * COPIES
    assert numbers[COPIES:] == sorted(set(numbers[COPIES:]))
    assert numbers[COPIES] > 1


def test_settings_are_written_one_by_one_and_read_back():
    talk = Talk(WantedSetting(codec.setting("control:outdoor", False)), TILT).connected()
    assert talk.drone.settings["control:euler_angle_max"] == "0.3"
    assert [settings.number("control:euler_angle_max") for settings in talk.used] == [0.3]
    configs = [each.key for each in talk.sent() if isinstance(each, codec.Config)]
    assert configs == ["general:navdata_demo", "control:outdoor", "control:euler_angle_max"]


@pytest.mark.parametrize("lost", [1, 4])
def test_a_lost_setting_is_repeated_until_it_is_acknowledged(lost):
    talk, seen = Talk(TILT), []

    def loses(data):
        if b"euler" in data:
            seen.append(data)
        return b"euler" in data and len(seen) <= lost

    talk.loses = loses
    talk.connected()
    assert talk.drone.settings["control:euler_angle_max"] == "0.3"


def test_a_setting_that_the_drone_bounds_is_warned_of_and_its_value_used():
    talk = Talk(WantedSetting(codec.setting("control:euler_angle_max", 0.9))).connected()
    assert any("euler_angle_max" in each for each in notes(talk.actions, "refused_settings"))
    assert talk.used[0].number("control:euler_angle_max") == 0.52


def test_a_setting_that_is_never_acknowledged_is_given_up():
    talk = Talk(WantedSetting(codec.setting("no:such_key", 1)), acknowledges_refused=False)
    talk.open()
    talk.run(10.0, until=lambda: notes(talk.actions, "refused_settings"))
    assert sum(isinstance(each, codec.Config) and each.key == "no:such_key" for each in talk.sent()) == MOST_TRIES
    assert talk.ask("takeoff").outcome is None  # it takes off


def test_an_acknowledgement_of_an_earlier_client_is_cleared_first():
    talk = Talk()
    talk.drone.is_acknowledging = talk.drone.is_bootstrapped = True
    talk.connected()
    assert talk.drone.settings["general:navdata_demo"] == "TRUE"


def test_without_the_control_port_the_settings_are_said_to_be_unknown():
    talk = without_control_port()
    talk.run(10.0, until=lambda: notes(talk.actions, "refused_settings"))
    assert talk.used == []


def test_limits_of_the_flight_are_written_on_the_ground_only():
    talk = Talk(TILT)
    talk.drone.is_bootstrapped = True
    talk.put_in_the_air().open()
    talk.run(2.0)
    assert talk.drone.settings["control:euler_angle_max"] != "0.3"
    talk.ask("land")
    talk.run(10.0, until=lambda: talk.drone.settings["control:euler_angle_max"] == "0.3")


def test_a_drone_that_was_switched_off_and_on_is_told_its_settings_again():
    talk = Talk(TILT).connected()
    other = Talk()
    assert len(talk.used) == 1
    talk.drone = other.drone
    talk.run(5.0, until=lambda: talk.drone.settings["control:euler_angle_max"] == "0.3")
    talk.run(5.0, until=lambda: len(talk.used) == 2)  # over another connection: the old one has no end


def test_a_connection_whose_text_is_lost_is_replaced():
    talk = without_control_port()
    talk.run(10.0, until=lambda: sum(is_connect(each) for each in talk.actions) == 3)
    talk.has_control_port = True
    talk.run(3.0, until=lambda: talk.used)
    assert talk.connected_to is None  # and is ended


def is_connect(action):
    return isinstance(action, Send) and (action.to, action.data) == (codec.CONTROL, codec.CONNECT)


def test_settings_without_an_end_are_refused_and_the_connection_is_ended():
    talk = without_control_port()
    talk.run(5.0, until=lambda: talk.connected_to)
    for _ in range(17):
        talk.take(talk.session.receive(b"a:b = 1\n" * 512, codec.CONTROL, talk.now_s))
    assert talk.connected_to is None
    assert len(notes(talk.actions, "rejected_input")) == 1
    assert talk.used == []


def test_settings_that_a_stall_has_cut_are_read_again():
    talk = without_control_port(TILT)
    talk.run(5.0, until=lambda: talk.connected_to)
    talk.take(talk.session.receive(b"control:euler_angle_max = 0.", codec.CONTROL, talk.now_s))
    talk.stall(0.5)
    assert talk.connected_to is None
    talk.has_control_port = True
    talk.run(5.0, until=lambda: talk.used)
    assert talk.used[0].number("control:euler_angle_max") == 0.3


@pytest.mark.parametrize("value", ["-0.3", "0", "1e30", "nan", "x" * 5000, "0.3\x1b[2J"])
def test_maxima_that_can_not_be_right_are_not_used(talk, value):
    talk.take(talk.session.receive(f"control:euler_angle_max = {value}\n\0".encode(), codec.CONTROL, talk.now_s))
    assert talk.used[-1].number("control:euler_angle_max") is None
    (sentence,) = [each for each in notes(talk.actions, "refused_settings") if "can't be right" in each]
    assert sentence.isprintable()
    assert len(sentence) < 400


def test_in_the_air_settings_are_read_and_again_once_they_are_written():
    talk = Talk(TILT)
    talk.drone.is_bootstrapped = True
    talk.put_in_the_air().open()
    talk.run(5.0, until=lambda: talk.used)
    assert talk.used[0].number("control:euler_angle_max") == pytest.approx(0.2094)
    talk.ask("land")
    talk.run(20.0, until=lambda: talk.used[-1].number("control:euler_angle_max") == 0.3)


# A drone that is not what it seems.


class ShortDemo(EmulatedArdrone):
    """Drone whose demo option is that of no firmware."""

    def _options(self):
        return tuple((tag, data if tag != codec.Tag.DEMO else data[:36]) for tag, data in super()._options())


NEVER_FULL = EmulatedArdrone(behaviour=FirmwareBehaviour(demo_ends_bootstrap=True))
FULL = WantedSetting(codec.setting("general:navdata_demo", False))


@pytest.mark.parametrize(
    ("drone", "wish", "words"), [(ShortDemo(), DEMO, "36 of 144 bytes"), (NEVER_FULL, FULL, "BOOTSTRAP")]
)
def test_navdata_without_a_flight_state_is_named(drone, wish, words):
    talk = Talk(drone=drone)
    talk.wishes = [wish]
    talk.open()
    talk.run(1.0, until=lambda: talk.session.watch.navdata)
    early = talk.ask("takeoff")
    talk.run(10.0)
    assert words in talk.session.problems[0]
    assert words in early.outcome.sentence
    assert words in talk.ask("takeoff").outcome.sentence
    assert sum(isinstance(each, codec.Config) for each in talk.sent()) == 1


@pytest.mark.parametrize("stall_s", [1.9, 6.0])
def test_neither_silence_nor_a_stall_is_a_problem_with_navdata(talk, stall_s):
    talk.parameters.navdata_timeout = 30.0
    talk.run(6.0)
    talk.stall(stall_s)
    for _ in range(14):
        assert not any(talk.session.problems)
        talk.run(0.5)
    talk.lose_navdata()
    talk.run(7.0)
    assert not any(talk.session.problems)


@pytest.mark.parametrize("demo_ends_bootstrap", [True, False])
def test_both_firmwares_leave_bootstrap_for_full_navdata(demo_ends_bootstrap):
    talk = Talk(FULL, demo_ends_bootstrap=demo_ends_bootstrap).connected()
    assert len(talk.session.watch.navdata.options) == 28
    talk.run(5.0)
    assert not any(talk.session.problems)
    assert not notes(talk.actions, "refused_settings")


def test_navdata_is_followed_thirty_times_per_second_and_when_its_state_changes():
    talk = Talk(FULL).connected()
    published = [each.message for each in talk.run(1.0) if isinstance(each, Publish)]
    assert sum(isinstance(each, MeasuredNavdata) for each in published) == pytest.approx(30, abs=1)  # of 100 steps
    assert sum(isinstance(each, codec.Navdata) for each in published) == pytest.approx(70, abs=1)
    for cause, words in ((codec.State.CUTOUT, "propeller"), (codec.State.MOTOR_FAULT, "motor has a fault")):
        talk.drone.enter_emergency(cause)
        talk.run(0.01)
        assert words in talk.session.problems[1]


def test_another_program_that_takes_navdata_away_is_named():
    talk, other = Talk().connected(), object()
    for _ in range(30):
        talk.drone.ask(other, talk.now_s)
        talk.run(0.4)
    assert "of 15 navdata per second arrive: perhaps another program gets the rest" in talk.session.problems[0]
    talk.run(11.0)
    assert not talk.session.problems[0]


def test_navdata_that_were_overtaken_have_arrived(talk):
    """As in a burst over Wi-Fi: each second one comes after the next one."""
    for _ in range(60):
        talk.now_s += 0.07
        late, first = (talk.drone.navdata(talk.now_s + ahead_s)[0] for ahead_s in (0.0, 0.07))
        for data in (first, late):
            talk.session.receive(data, codec.NAVDATA, talk.now_s)
        talk.now_s += 0.07
    assert not talk.session.problems[0]


def test_a_climb_that_ends_at_the_drones_own_altitude_max_is_named():
    talk = Talk(WantedSetting(codec.setting("control:altitude_max", 2000))).flying()
    talk.drone.flight.position[2] = 1.9
    talk.run(0.5)
    assert not talk.session.problems[2]
    talk.pilot.wanted = Shares(thrust=1.0)
    talk.run(1.0)
    assert "altitude_max of 2 m" in talk.session.problems[2]
    talk.pilot.wanted = Shares(thrust=-1.0)
    talk.run(1.0)
    assert not talk.session.problems[2]


@pytest.mark.parametrize(("version", "is_named"), [(2, True), (1, False)])
def test_a_magnetometer_without_calibration_is_named(version, is_named):
    talk = Talk(version=version)
    talk.drone.faults = codec.State.MAGNETOMETER_UNCALIBRATED  # another bit of an AR.Drone 1
    assert ("magnetometer" in talk.connected().session.problems[3]) == is_named


# Flying.


def test_takeoff_and_landing_are_confirmed_by_navdata(flying):
    assert flying.session.requests.level is True
    land = flying.ask("land")
    flying.until(FlightPhase.LANDED)
    assert land.outcome.is_success
    flying.run(0.5)
    assert flying.flights() == [False, True, False]
    assert flying.session.landing(flying.now_s) is Landing.GROUNDED


def just_switched_on():
    """Return a talk with a drone that has sent navdata, but has no settings yet."""
    talk = Talk().open()
    talk.run(5.0, until=lambda: talk.session.watch.navdata is not None)
    assert talk.session.watch.navdata.has(codec.State.BOOTSTRAP)
    return talk


def test_a_takeoff_waits_for_the_settings_of_the_drone():
    talk = just_switched_on()
    takeoff = talk.ask("takeoff")
    assert takeoff.outcome is None
    assert "in progress" in talk.ask("takeoff").outcome.sentence
    talk.run(8.0, until=lambda: talk.drone.flight.is_hovering)
    assert takeoff.outcome.is_success


@pytest.mark.parametrize("end", ["hold", "land", "emergency", "stall", "lost", "end", "silence"])
def test_a_takeoff_that_waits_for_settings_ends_with(end):
    talk = just_switched_on()
    takeoff = talk.ask("takeoff")
    if end == "hold":
        talk.pilot.rank = Rank.HOLD
    elif end in ("land", "emergency"):
        talk.ask(end)
    elif end == "stall":
        talk.stall(0.5)
    elif end == "silence":
        talk.is_linked = False
    else:
        talk.take(getattr(talk.session, end)(talk.now_s))
    talk.run(8.0)
    assert takeoff.outcome is not None
    assert not takeoff.outcome.is_success
    assert talk.drone.flight.phase in (FlightPhase.LANDED, FlightPhase.EMERGENCY)


def test_commands_steer_with_the_signs_of_rep_103(flying):
    flying.pilot.wanted = FORWARD
    flying.run(2.0)
    assert flying.drone.flight.velocity[0] > 0.3
    motion = flying.pilot.measurements[-1].motion
    assert motion.forward == pytest.approx(flying.drone.flight.velocity[0], abs=0.1)
    assert motion.height == pytest.approx(1.0, abs=0.2)


def test_a_low_battery_and_a_flying_drone_refuse_a_takeoff(talk):
    talk.drone.charge = 0.1
    talk.run(0.3)
    assert "battery" in talk.ask("takeoff").outcome.sentence
    talk = Talk().flying()
    assert "flying" in talk.ask("takeoff").outcome.sentence


def test_requests_without_navdata_are_refused_but_land_is_sent(flying):
    flying.lose_navdata()
    flying.run(1.5)
    assert flying.session.state == ASKING
    assert "Wi-Fi" in flying.session.problems[0]
    assert "navdata" in flying.ask("takeoff").outcome.sentence
    assert "navdata" in flying.ask("reset").outcome.sentence
    land = flying.ask("land")
    flying.run(6.0)
    assert flying.drone.flight.phase is FlightPhase.LANDED
    assert "unconfirmed" in land.outcome.sentence


@pytest.mark.parametrize("has_navdata", [True, False])
def test_a_limit_lands_the_drone(flying, has_navdata):
    if not has_navdata:
        flying.lose_navdata()
        flying.run(1.5)
        assert flying.session.requests.level is None
    flying.pilot.rank = Rank.LANDING
    flying.until(FlightPhase.LANDED)
    flying.pilot.rank = Rank.NEUTRAL
    flying.run(2.0)
    assert flying.drone.flight.phase is FlightPhase.LANDED


def test_flat_trim_is_repeated_and_refused_in_the_air(talk):
    talk.drone.flight.level_error = (0.1, 0.0)
    assert talk.ask("flat_trim").outcome.is_success
    talk.run(1.0)
    assert talk.drone.flight.level_error == (0.0, 0.0)
    assert sum(isinstance(each, codec.FlatTrim) for each in talk.sent()) == TRIMS
    talk = Talk().flying()
    assert not talk.ask("flat_trim").outcome.is_success


def test_older_navdata_is_dropped(talk):
    old = talk.drone._connection.send(talk.session.watch.navdata)
    talk.run(0.3)
    actions = talk.session.receive(old, codec.NAVDATA, talk.now_s)
    assert notes(actions, LATE) == [""]


def test_navdata_that_ends_is_asked_for_again(talk):
    talk.drone._clients.clear()
    talk.run(0.5)
    assert talk.drone.clients == (talk,)
    assert not notes(talk.actions, SILENCES)


# The end.


def test_at_the_end_the_drone_hovers_and_keeps_its_level(flying):
    flying.pilot.wanted = FORWARD
    flying.run(1.0)
    begin = len(flying.actions)
    flying.take(flying.session.end(flying.now_s))
    flying.run(0.2)
    sent = flying.sent(flying.actions[begin:])
    assert sent == [codec.Pcmd()] * FINAL_REPEATS
    assert flying.session.is_over
    flying.run(1.0)
    assert flying.drone.flight.is_hovering
    assert not any(isinstance(each, codec.Ref) for each in sent)
    assert "hovers on" in notes(flying.actions[begin:], "")[0]


def test_a_heading_that_begins_again_goes_on_for_the_pilot():
    talk = Talk()
    talk.session.watch._pose = ContinuousPose(ObservedMotion(lambda: talk.now_s), 5.0, 1.0)
    talk.drone.flight.yaw = 1.2
    talk.open().run(1.0)
    talk.drone.flight.yaw = 0.0
    actions = talk.run(1.0)
    assert len(notes(actions, POSE_RESTARTS)) == 1
    assert {round(measured.yaw, 2) for measured in talk.pilot.measurements if measured.yaw is not None} == {1.2}
