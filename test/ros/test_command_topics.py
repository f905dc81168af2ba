# SPDX-License-Identifier: Apache-2.0
"""Handling of messages on command topics: followed, refused, overruled, counted. Without DDS, with a fake clock."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from commanded_node import EPOCH_S, CommandedNode, commanded_nodes
from geometry_msgs.msg import PolygonStamped, Twist, TwistStamped
from std_msgs.msg import Bool, Header
from twists import twist

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.limits import LOW_BATTERY_S
from drone_bridge.msg import CommandAxes, CommandRates, PilotCommand
from drone_bridge.ros.commands.command_ages import CLOCK_TOLERANCE_S
from drone_bridge.ros.commands.command_streams import DROPPED, LATE_S
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.session.arbiter import SINKING, Rank
from drone_bridge.session.session import Landing

TIMEOUT_S = 0.5
HELM, CMD_VEL, STAMPED, GOAL = "~/helm", "cmd_vel", "cmd_vel_stamped", "cmd_vel_goal"


def within_maxima(command):
    if isinstance(command, BodyVelocity):
        return replace(command, forward=min(command.forward, 10.0))
    return "full" if isinstance(command, CommandAxes) and command.pitch > 1.0 else command


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Create a bridge whose vehicle follows three axes, at most 10 m/s, and shares up to 1."""

    make_node = commanded_nodes(monkeypatch, tmp_path)

    def made(*, now=None, is_time_simulated=False, limits=None, command_timeout=TIMEOUT_S, **options):
        parameters = {f"limits.{name}": value for name, value in (limits or {}).items()}
        node = make_node(is_time_simulated=is_time_simulated, command_timeout=command_timeout, **parameters)
        commands = CommandTopics(node, now, node.wake, within_maxima=within_maxima, **options)
        commands.take_velocities(("linear.x", "linear.z", "angular.z"))
        for topic, kind in (("cmd_rates", CommandRates), ("cmd_axes", CommandAxes)):
            commands.take(topic, kind, lambda message: message)
        node.follow(commands)
        return node

    return made


@pytest.fixture
def node(make):
    return make()


FORWARD, UP = BodyVelocity(forward=1.0), BodyVelocity(up=1.0)
FOLLOWED = (Rank.COMMAND, FORWARD)
NOTHING = Rank.NEUTRAL, None


@pytest.mark.parametrize("topic", [CMD_VEL, STAMPED, GOAL])
def test_programs_that_send_on_one_topic_are_reported_until_one_is_idle(node, topic):
    """Also if only one is ever followed, since the messages of the other one are replaced before they are taken."""
    node.publishers = [endpoint("navigation", topic=topic), endpoint("teleop", "/old", topic)]
    numbers = {"navigation": 40, "teleop": 1}

    def pass_second(*sends):
        for _ in range(20):
            for each in sends:
                numbers[each] += 1
                node.listened[f"/{topic}"].append((None, {"publication_sequence_number": numbers[each]}))
        node.pass_second()
        node.now_s += 1.1
        return node.conditions["commanders"]

    pass_second()
    assert pass_second("navigation") is None
    both = pass_second("navigation", "teleop")
    assert both == f"/navigation and /old/teleop send commands on /{topic} at the same time"
    seen = [pass_second("teleop") for _ in range(5)]
    assert (seen[0], seen[-1]) == (both, None)
    node.publishers.pop()
    assert pass_second("navigation", "teleop") is None


def test_two_programs_of_one_node_are_reported(node):
    """As two clients of rosbridge."""
    node.publishers, numbers = [endpoint("web_bridge")] * 2, [0, 500]
    for _ in range(5):
        for index in (0, 1) * 10:
            numbers[index] += 1
            node.listened.setdefault("/cmd_vel", []).append((None, {"publication_sequence_number": numbers[index]}))
        node.pass_second()
        node.now_s += 1.1
    assert node.conditions["commanders"] == "/web_bridge (2 publishers) send commands on /cmd_vel at the same time"


def test_where_messages_have_no_numbers_the_publishers_are_only_named(node):
    """Humble, and other middlewares."""
    node.publishers = [endpoint("navigation"), endpoint("teleop", "/old")]
    for _ in range(5):
        node.send(CMD_VEL, forward=1.0)
        node.pass_second()
        node.listened["/cmd_vel"] += [(None, {}), (None, {"publication_sequence_number": None})]
    assert node.conditions["commanders"] is None
    assert node.report.facts["commander"] == "/navigation or /old/teleop on /cmd_vel"


@pytest.mark.parametrize(("lower", "higher"), [(GOAL, CMD_VEL), (CMD_VEL, STAMPED), (GOAL, STAMPED)])
def test_what_overrules_a_commander_is_named(node, lower, higher):
    """Even zeros: a goal does not move a vehicle that a program stops."""
    node.publishers = [endpoint("teleop", topic=higher)]
    for _ in range(30):
        assert node.send(higher, forward=0.5)[1] == BodyVelocity(forward=0.5)
        assert node.send(lower, forward=1.0)[1] == BodyVelocity(forward=0.5)
        node.now_s += 0.1
    node.pass_second()
    assert node.conditions["overruled"] == f"/{lower} is ignored while commands come on /{higher}, by /teleop"
    assert node.logs["overruled"] is (lower is not GOAL), "a goal reports itself for whom it waits"
    assert node.conditions["commanders"] is None
    assert node.latched[-1].commander == f"/{higher}"
    node.now_s += TIMEOUT_S
    assert node.send(lower, forward=1.0) == FOLLOWED
    node.pass_second()
    assert node.conditions["overruled"] is None
    assert node.latched[-1].commander == f"/{lower}"


SHARED = "/bridge and /other follow the same /cmd_vel: end all but one, or start each with namespace:=NAME of its own"


@pytest.mark.parametrize("topic", [CMD_VEL, HELM])
def test_a_vehicle_beside_another_one_waits_for_a_person(node, topic):
    """Else one command drives two."""
    node.vehicles = ["/other"]
    assert node.send(topic, forward=1.0) == (Rank.HOLD, None)
    assert node.hold.state.now[0] == SHARED
    assert node.conditions["shared"] == SHARED.partition(":")[0]
    node.send(HELM, forward=1.0)
    assert node.send(CMD_VEL, forward=1.0)[0] is Rank.HOLD
    node.now_s += 1.1
    node.pass_second()
    node.call_hold(False)
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED
    assert node.conditions["shared"]


def test_a_vehicle_goes_on_when_another_one_comes(node):
    for _ in range(6):
        node.pass_second()
        node.now_s += 1.0
    node.vehicles = ["/other"]
    node.pass_second()
    assert node.conditions["shared"]
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED


@pytest.mark.parametrize("name", ["/bridge", "/other"])
def test_a_resume_beside_another_vehicle_outlasts_a_respawn_of_each(make, monkeypatch, name):
    node = make()
    node.vehicles = ["/other"]
    node.pass_second()
    node.call_hold(False)
    node.pass_second()
    assert node.others._resumed.wait(10.0)
    monkeypatch.setattr(CommandedNode, "get_fully_qualified_name", lambda _: name)
    back = make()
    back.vehicles = ["/other" if name == "/bridge" else "/bridge"]
    back.pass_second()
    assert back.conditions["shared"]
    assert not back.hold.is_held
    third = make()
    third.vehicles = [*back.vehicles, "/third"]
    third.pass_second()
    assert third.hold.is_held


def test_a_vehicle_does_not_start_by_itself_as_the_other_one_ends(node):
    node.vehicles = ["/other"]
    node.pass_second()
    node.vehicles = []
    node.pass_second()
    assert not node.conditions["shared"]
    assert node.send(CMD_VEL, forward=1.0)[0] is Rank.HOLD
    node.call_hold(False)
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED


def test_the_first_vehicle_follows_commands_beside_a_later_one(node):
    node.send(CMD_VEL, forward=1.0)
    node.now_s += 10.0
    node.vehicles = ["/other"]
    node.pass_second()
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED
    assert node.conditions["shared"]


def test_commands_that_come_too_seldom_are_reported(node):
    for _ in range(5):
        assert node.send(CMD_VEL, forward=1.0)[0] is Rank.COMMAND
        node.now_s += 1.0
    node.pass_second()
    assert "a command comes on /cmd_vel every 1.0 s, and the vehicle stops after 0.5 s" in node.conditions["seldom"]


AHEAD, FENCE = {CMD_VEL: (1, 0)}, {"fence_radius": 2.0}


@pytest.mark.parametrize(
    ("obstacle", "sentence", "commands", "limits"),
    [
        (
            "overruled",
            "/cmd_vel is ignored while commands come on /cmd_vel_stamped",
            {STAMPED: (1, 0), **AHEAD},
            {},
        ),
        ("unfollowed", "a command with linear.y = 2 m/s: this vehicle supports only linear.x", {CMD_VEL: (0, 2)}, {}),
        (
            "unfollowed",
            "a command with linear.x = 1 m/s: it is at limits.fence",
            AHEAD,
            {"fence_radius": 2.0},
        ),
        ("grounded", "the drone is on the ground", AHEAD, {}),
        ("helm", "a person is at the helm", {HELM: (1, 0), **AHEAD}, {}),
    ],
)
def test_a_command_that_moves_nothing_is_reported_while_it_comes(make, obstacle, sentence, commands, limits):
    node = make(limits=limits, has_landing_button=obstacle == "grounded")
    for x in (0.0, 2.0):
        node.observed.measured(0.0, (x, 0.0, 1.0), velocity=(0.0, 0.0, 0.0))
    if obstacle == "grounded":
        node.arbiter.limits.flew(False, node.now_s)
    for topic, (forward, left) in commands.items():
        node.send(topic, forward=forward, left=left)
    for is_reported in (True, False):
        node.hold.report()
        node.pass_second()
        assert sentence in (node.conditions[obstacle] or "") if is_reported else node.conditions[obstacle] is None
        node.now_s += 2.0


def endpoint(name, namespace="/", topic=CMD_VEL):
    kind = "geometry_msgs/msg/Twist"
    return SimpleNamespace(node_name=name, node_namespace=namespace, topic=f"/{topic}", topic_type=kind)


# Priority of sources.


@pytest.mark.parametrize("topic", [CMD_VEL, STAMPED])
def test_a_command_is_followed_for_its_timeout(node, topic):
    assert node.send(topic, forward=1.0) == FOLLOWED
    assert (node.counts, node.wakes) == ({"commands": 1}, 1)
    assert node.on_their_way == [topic]
    node.now_s += TIMEOUT_S
    assert node.decided() == FOLLOWED
    node.now_s += 0.01
    assert node.decided() == NOTHING


def test_cmd_vel_stamped_overrides_all_but_the_helm_for_the_timeout(node):
    node.send(CMD_VEL, forward=2.0)
    assert node.send(STAMPED, forward=1.0) == FOLLOWED
    node.now_s += TIMEOUT_S - 0.01
    for topic, message in ((CMD_VEL, twist(forward=2.0)), ("cmd_axes", CommandAxes()), ("cmd_rates", CommandRates())):
        assert node.send(topic, message) == FOLLOWED
    assert node.counts == {"commands": 2, "overruled_commands": 3}
    node.now_s += 0.02
    assert node.send(CMD_VEL, forward=2.0) == (Rank.COMMAND, BodyVelocity(forward=2.0))
    node.send(STAMPED, forward=1.0)
    assert node.send(HELM, forward=3.0) == (Rank.HELM, BodyVelocity(forward=3.0))


def test_a_refused_command_overrides_no_other(node):
    node.send(STAMPED, ago_s=10.0, forward=2.0)
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED


# Stale, from the future, without a stamp.


def test_a_stale_stamped_command_is_refused(node):
    node.send(STAMPED, ago_s=TIMEOUT_S + 0.1, forward=1.0)
    assert node.decided() == NOTHING
    assert node.counts == {"refused_commands": 1}
    (sentence,) = node.warned
    assert "0.600 s old" in sentence
    assert node.send(STAMPED, ago_s=TIMEOUT_S - 0.1, forward=1.0) == FOLLOWED


@pytest.mark.parametrize("topic", [STAMPED, HELM])
def test_the_age_of_a_stamp_ahead_of_our_clock_is_unknown(node, topic):
    assert node.send(topic, ago_s=-CLOCK_TOLERANCE_S - 0.1, forward=1.0) == NOTHING
    assert "stamped 0.200 s ahead" in node.warned[0]
    assert node.send(topic, ago_s=-CLOCK_TOLERANCE_S + 0.01, forward=1.0)[1] == FORWARD


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"ago_s": -0.2}, "it is stamped 0.200 s ahead of the bridge's clock, so its age is unknown: run chrony"),
        ({"ago_s": 3.2}, "it is 3.200 s old (limit 0.5 s, command_timeout): if the clocks differ, run chrony"),
        ({"ago_s": 7200.0}, "it is 7200.000 s old (limit 0.5 s, command_timeout): if the clocks differ, run chrony"),
        ({"forward": math.nan}, "twist.linear.x is nan"),
        ({"message": TwistStamped(header=Header(frame_id="moon"))}, "its frame_id is 'moon'"),
    ],
)
@pytest.mark.parametrize("before", [{}, {"forward": 1.0}])
def test_a_person_whose_commands_are_refused_is_a_person(node, message, reason, before):
    """Else a program drives on under a person's helm, of which the page says that it steers."""
    node.send(HELM, **before) if before else node.send(CMD_VEL, forward=1.0)
    assert node.send(HELM, **message) == NOTHING
    assert node.send(CMD_VEL, forward=1.0) == NOTHING
    assert node.latched[-1].helm.startswith(f"a person is at the helm, and its commands are refused: {reason}")
    node.now_s += 1.1
    node.pass_second()
    node.hold.report()
    assert node.send(CMD_VEL, forward=1.0)[0] is Rank.HOLD
    assert node.hold.state.now[0] == "the helm ended"


def test_a_person_whose_clock_agrees_again_is_followed(node):
    node.send(HELM, ago_s=9.0, forward=1.0)
    assert node.send(HELM, forward=1.0) == (Rank.HELM, FORWARD)
    assert node.latched[-1].helm == "a person is at the helm"


@pytest.mark.parametrize(("topic", "offset_s"), [(HELM, 1.0), (HELM, -1.0), (STAMPED, 1.0)])
def test_a_stream_with_a_wrong_clock_is_logged_once(node, topic, offset_s):
    for number in range(600):
        node.send(topic, ago_s=offset_s + number / 10_000, forward=1.0)  # it drifts
        node.now_s += 0.05
    assert len(node.warned) == 1
    assert node.counts["refused_commands"] == 600
    node.now_s += 60.0
    node.send(topic, ago_s=offset_s, forward=1.0)
    assert len(node.warned) == 2


def test_a_refused_helm_message_from_before_a_resume_does_not_hold_again(node):
    node.send(HELM, forward=1.0)
    node.now_s += 1.1
    node.hold.report()
    node.call_hold(False)
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED
    node.now_s += 0.4
    node.send(HELM, ago_s=1.0, forward=1.0)
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED
    node.now_s += 0.2
    node.send(HELM, ago_s=1.0, forward=1.0)
    assert node.send(CMD_VEL, forward=1.0) == NOTHING


def test_a_refused_helm_interrupts_no_landing(make):
    node = make(limits={"land_on_low_battery": True, "low_battery": 0.3})
    node.arbiter.limits.flew(True, node.now_s)
    node.arbiter.limits.charged(0.1, node.now_s)
    node.now_s += LOW_BATTERY_S
    for _ in range(3):
        assert node.send(HELM, ago_s=1.0, forward=1.0) == (Rank.LANDING, SINKING)
        node.now_s += 0.5
    assert node.send(HELM, up=1.0) == (Rank.HELM, UP)


def test_while_one_pilot_steers_others_are_refused_whatever_they_send(node):
    def send(id_, ago_s=0.0, **axes):
        return node.send("~/pilot", PilotCommand(id=id_, name=id_.title(), twist=twist(**axes)), ago_s)

    def said():
        return node.latched[-1].pilot, node.latched[-1].pilot_name

    steered = Rank.HELM, FORWARD
    assert send("anne", forward=1.0) == steered
    assert said() == ("anne", "Anne")
    assert [send("ben", up=1.0), send("ben", ago_s=9.0), send("", up=1.0), node.send(HELM, up=1.0)] == [steered] * 4
    assert (node.counts["commands_refused_on_hold"], node.hold.state.refused_helm) == (4, "")
    node.send("~/pilot", PilotCommand(id="anne", asks=True))
    node.now_s += 1.1
    node.hold.report()
    assert said() == ("", "")
    node.send("~/pilot", PilotCommand(id="ben", asks=True))
    assert said() == ("", "")  # a request is no command
    assert node.send(HELM, up=1.0) == (Rank.HELM, UP)
    assert said()[0] == "anonymous"
    node.hold.hold("Ben pressed STOP")
    send("anne")
    assert said() == ("anne", "Anne")  # as a held vehicle has a pilot, too


def test_a_stamp_of_zero_counts_as_none_and_is_reported_once(node):
    """As in ros2_controllers: people publish a TwistStamped from the command line, without a stamp."""
    for _ in range(3):
        assert node.send(STAMPED, ago_s=None, forward=1.0) == FOLLOWED
    assert node.counts["commands"] == 3
    assert ["have a stamp of zero" in line for line in node.logged] == [True]


def test_while_simulated_time_begins_zero_is_a_time(make):
    node = make(is_time_simulated=True)
    node.now_s = 0.2
    node.send(STAMPED, ago_s=None, forward=1.0)
    assert node.arbiter.newest.stamp == (0, 0)
    node.now_s = 10.0
    node.send(STAMPED, ago_s=None, forward=1.0)
    assert node.arbiter.newest.stamp is None
    assert len(node.logged) == 1


def test_a_stamp_ahead_of_a_shared_clock_counts_as_new(make):
    node = make(is_time_simulated=True)
    assert node.send(STAMPED, ago_s=-5.0, forward=1.0) == FOLLOWED


def test_with_time_from_the_wire_ages_are_relative_to_it(make):
    wire = Time(sec=1000)
    node = make(now=lambda: wire)
    message = TwistStamped(twist=twist(forward=1.0))
    for behind_s, is_followed in ((0, True), (1, False), (-1, True)):
        node.arbiter.forget()
        message.header.stamp = Time(sec=1000 - behind_s)
        assert (node.send(STAMPED, message, ago_s=None) == FOLLOWED) is is_followed


def test_a_command_has_the_stamp_of_its_frame(node):
    node.send(STAMPED, forward=1.0)
    assert node.arbiter.newest.stamp == (int(EPOCH_S + node.now_s), 0)
    node.send(CMD_VEL, forward=1.0)
    node.now_s += TIMEOUT_S
    node.send(CMD_VEL, forward=1.0)
    assert node.arbiter.newest.stamp is None


RAW = {"cmd_axes": CommandAxes(pitch=1.0), "cmd_rates": CommandRates(thrust=1.0)}


@pytest.mark.parametrize("topic", [CMD_VEL, STAMPED, HELM, *RAW])
def test_commands_pending_during_a_stall_are_refused(node, monkeypatch, topic):
    ran_s = [0.1]
    monkeypatch.setattr(PROCESS, "running_s", lambda: ran_s[0])
    for _ in range(2):
        assert node.send(topic, RAW.get(topic), forward=1.0) == NOTHING
        assert node.hold.state.is_free is (topic != HELM)
    assert "stalled" in node.warned[-1]
    ran_s[0] = math.inf
    assert node.send(topic, RAW.get(topic), forward=1.0)[1]


@pytest.mark.parametrize("topic", [CMD_VEL, STAMPED, HELM])
def test_a_zero_velocity_right_after_a_stall_ends_the_command_from_before(node, monkeypatch, topic):
    node.send(topic, forward=1.0)
    node.now_s += 0.35
    monkeypatch.setattr(PROCESS, "running_s", lambda: 0.1)
    assert node.send(topic)[1] is None
    assert not node.hold.is_held


@pytest.mark.parametrize(("topic", "other"), [(STAMPED, CMD_VEL), (HELM, STAMPED), (CMD_VEL, "cmd_axes")])
def test_a_zero_right_after_a_stall_ends_no_command_that_overrides_it(node, monkeypatch, topic, other):
    node.send(topic, forward=1.0)
    node.now_s += 0.35
    monkeypatch.setattr(PROCESS, "running_s", lambda: 0.1)
    assert node.send(other, CommandAxes() if other in RAW else None)[1] == FORWARD


@pytest.mark.parametrize(("stop", "is_stopped"), [(Twist(), True), (twist(forward=2.0), False)])
def test_a_zero_velocity_that_is_taken_late_ends_the_command_from_before(node, stop, is_stopped):
    node.intake.opened()
    node.send(CMD_VEL, forward=1.0)
    node.posted.pop()(node.now_s)  # the link's thread takes
    node.waiting[CMD_VEL].append(stop)
    node.now_s += LATE_S + 0.01
    assert node.decided() == (NOTHING if is_stopped else FOLLOWED)
    assert node.counts[DROPPED] == 1


# Invalid commands for this vehicle.


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("topic", "message", "field"),
    [
        (CMD_VEL, lambda value: twist(forward=value), "linear.x"),
        (STAMPED, lambda value: TwistStamped(twist=twist(left_turn=value)), "twist.angular.z"),
        (HELM, lambda value: TwistStamped(twist=twist(up=value)), "twist.linear.z"),
        ("cmd_axes", lambda value: CommandAxes(roll=value), "roll"),
        ("cmd_rates", lambda value: CommandRates(thrust=value), "thrust"),
    ],
)
def test_non_finite_commands_are_refused(node, topic, message, field, value):
    assert node.send(topic, message(value)) == NOTHING
    assert node.warned == [f"A command on {topic} was refused: {field} is {value} but must be a finite number."]


def test_a_command_uses_the_axes_of_its_frame_if_known(node):
    message = TwistStamped(twist=twist(forward=1.0))
    message.header.frame_id = "elsewhere"
    assert node.send(STAMPED, message) == NOTHING
    message.header.frame_id = "odom"
    assert node.send(STAMPED, message) == NOTHING  # its heading is unknown
    node.observed.measured(math.pi / 2)
    rank, turned = node.send(STAMPED, message)
    assert (rank, turned.forward) == (Rank.COMMAND, pytest.approx(0.0))  # it goes right, which the vehicle can't do
    assert node.counts["refused_commands"] == 2


def test_an_unsupported_axis_is_reported_once_and_the_others_are_followed(node):
    for little in (1e-9, 9e-3):  # a controller's rounding error, and less than 1 %
        assert node.send(CMD_VEL, twist(forward=1.0, left=little)) == FOLLOWED
        node.pass_second()
    assert node.logged == []
    for _ in range(2):
        assert node.send(CMD_VEL, twist(forward=1.0, left=0.5)) == FOLLOWED
        node.pass_second()
    (sentence,) = node.logged
    assert "linear.y = 0.5 m/s, but the vehicle follows 0" in sentence


def test_commands_beyond_the_vehicle_s_limits_are_counted_and_said_once(node):
    assert node.send(CMD_VEL, forward=10.05) == (Rank.COMMAND, BodyVelocity(forward=10.0))
    node.pass_second()
    assert node.logged == []  # less than 1 %
    assert node.send(CMD_VEL, forward=11.0) == (Rank.COMMAND, BodyVelocity(forward=10.0))
    assert node.send(CMD_VEL, forward=10.0) == (Rank.COMMAND, BodyVelocity(forward=10.0))
    assert node.send("cmd_axes", CommandAxes(pitch=2.0)) == (Rank.COMMAND, "full")
    assert node.counts == {"commands": 4, "clamped_commands": 3}
    for _ in range(2):
        node.pass_second()
    (sentence,) = node.logged
    assert "linear.x = 11 m/s, but the vehicle follows 10" in sentence


# Hold and helm.


@pytest.mark.parametrize("topic", [CMD_VEL, STAMPED, *RAW])
def test_a_held_vehicle_gets_neutral_only_until_a_person_releases_it(node, topic):
    def command():
        return node.send(topic, RAW.get(topic), forward=1.0)[0]

    assert command() is Rank.COMMAND
    wakes = node.wakes
    assert "is held" in node.call_hold(True).message
    assert node.wakes == wakes + 1  # so that neutral is sent now
    assert node.decided() == (Rank.HOLD, None)
    assert {command() for _ in range(3)} == {Rank.HOLD}
    assert node.counts["commands_refused_on_hold"] == 3
    assert "held (the service hold was called)" in node.warned[0]
    node.call_hold(False)
    assert node.decided() == NOTHING  # earlier commands do not come back
    assert command() is Rank.COMMAND


def test_a_helm_locks_out_others_and_its_end_holds(node):
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED
    assert node.send(HELM, up=1.0) == (Rank.HELM, UP)
    for topic in (CMD_VEL, STAMPED):
        assert node.send(topic, ago_s=0.1, forward=1.0) == (Rank.HELM, UP)
    assert node.counts["commands_refused_on_hold"] == 2
    assert node.warned == []  # the pilot who took the helm knows
    node.now_s += TIMEOUT_S + 0.01
    assert node.decided() == (Rank.HELM, None)
    assert node.send(CMD_VEL, forward=1.0) == (Rank.HELM, None)
    node.now_s += 1.0
    assert node.decided() == (Rank.HOLD, None)  # there is no command
    assert node.send(CMD_VEL, forward=1.0) == (Rank.HOLD, None)
    node.hold.report()
    assert [message.data for message in node.latched if isinstance(message, Bool)] == [False, True]
    assert node.send(HELM, up=1.0) == (Rank.HELM, UP)  # but the pilot at the helm may continue
    assert [message.data for message in node.latched if isinstance(message, Bool)][-1] is False
    warned = len(node.warned)
    assert node.send(CMD_VEL, forward=1.0) == (Rank.HELM, UP)
    assert len(node.warned) == warned


def test_an_idle_program_beside_a_helm_or_on_hold_is_no_matter(node):
    for refuse in (lambda: node.send(HELM, up=1.0), lambda: node.call_hold(True)):
        refuse()
        for topic in (CMD_VEL, STAMPED):
            node.send(topic)
        node.hold.report()
        assert node.conditions["helm"] is None
        assert node.counts.get("commands_refused_on_hold", 0) == 0
    node.send(CMD_VEL, forward=1.0)
    assert node.counts["commands_refused_on_hold"] == 1


def test_a_new_helm_discards_earlier_commands(node):
    node.send(CMD_VEL, forward=1.0)
    assert node.hold.take_helm(HELM)  # and the link's thread runs now
    assert node.decided() == (Rank.HELM, None)


def test_a_hold_stops_the_helm_which_alone_may_continue_after_the_release(node):
    node.send(HELM, up=1.0)
    node.call_hold(True)
    assert node.send(HELM, up=1.0) == (Rank.HOLD, None)
    assert node.counts["commands_refused_on_hold"] == 1
    node.call_hold(False)
    assert node.decided() == (Rank.HELM, None)
    assert node.send(CMD_VEL, forward=1.0) == (Rank.HELM, None)
    assert node.send(HELM, up=1.0) == (Rank.HELM, UP)


def test_a_helm_that_continues_and_is_killed_with_the_bridge_leaves_a_hold(make):
    node = make()
    node.send(HELM, up=1.0)
    node.call_hold(True)
    node.send(HELM, up=1.0)
    node.call_hold(False)
    assert make().decided() == (Rank.HOLD, None)


def test_a_release_before_the_detected_end_of_a_helm_restores_no_command(make):
    node = make(command_timeout=60.0)
    node.send(HELM, up=1.0)
    node.now_s += 1.1
    assert node.decided() == (Rank.HOLD, None)
    node.call_hold(False)
    assert node.decided() == NOTHING


@pytest.mark.parametrize("holds_zero", [True, False])
def test_a_centred_stick_is_zero_or_neutral_whichever_holds_better(make, holds_zero):
    node = make(holds_zero=holds_zero)
    node.send(HELM, up=1.0)
    wakes = node.wakes
    assert node.send(HELM) == (Rank.HELM, STILL if holds_zero else None)
    assert node.wakes == wakes + 1


def test_a_zero_of_others_is_a_command(make):
    assert make(holds_zero=False).send(CMD_VEL) == (Rank.COMMAND, STILL)


def test_a_bridge_killed_during_a_helm_restarts_on_hold(make):
    node = make()
    node.send(HELM, up=1.0)
    assert node.hold._writer.wait(10.0)
    back = make()
    assert back.decided() == (Rank.HOLD, None)
    assert "still holds" in back.logged[0]
    assert back.send(HELM, up=1.0) == (Rank.HELM, UP)


# Limits.


def test_a_fast_command_is_followed_within_the_limits_with_its_turn_rate(make):
    node = make(limits={"max_speed": 2.0})
    assert node.send(CMD_VEL, forward=8.0, left_turn=0.5) == (Rank.COMMAND, BodyVelocity(forward=2.0, turn=0.5))
    assert node.counts == {"commands": 1, "limited_commands": 1}


#: What is said about a landing, None for nothing.
LANDING_WORDS = {
    Landing.LANDS: "it lands by itself",
    Landing.GROUNDED: None,
    Landing.DISCONNECTED: "not connected",
    Landing.SILENT: "does not report",
    Landing.UNKNOWN_FLIGHT: "unknown whether it flies",
    Landing.UNSUPPORTED: "no command to land",
}


@pytest.mark.parametrize("has_landing_button", [True, False])
def test_a_vehicle_with_lost_odometry_stops_and_then_lands_unless_held(make, has_landing_button):
    limits = {"max_speed": 2.0, "fence_radius": 5.0, "odometry_timeout": 0.5, "land_without_odometry": 1.0}
    node = make(limits=limits, has_landing_button=has_landing_button)
    node.observed.measured(0.0, (0.0, 0.0, 1.0))
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED
    node.pass_second()
    assert node.conditions["odometry"] is None
    node.now_s += 0.6
    assert node.send(CMD_VEL, forward=1.0) == (Rank.BLIND, None)
    node.pass_second()
    assert "limits.fence_radius needs odometry" in node.conditions["odometry"]
    assert node.conditions["landing"] is None
    node.now_s += 1.0
    sinking = None if has_landing_button else SINKING
    assert node.decided() == (Rank.LANDING, sinking)
    for landing, words in LANDING_WORDS.items():
        node.landing = lambda now_s, landing=landing: landing
        node.pass_second()
        named = [node.conditions[each] for each in ("landing", "unable_to_land") if node.conditions[each]]
        assert [words in each for each in named] == [True] * (words is not None)
    node.call_hold(True)
    assert node.decided() == (Rank.HOLD, None)
    node.pass_second()
    assert node.conditions["landing"] is None
    node.call_hold(False)
    assert node.decided() == (Rank.LANDING, sinking)
    node.observed.measured(0.0, (0.0, 0.0, 1.0))
    assert node.send(CMD_VEL, forward=1.0) == FOLLOWED
    node.pass_second()
    assert set(node.conditions.values()) == {None}


def test_an_unattended_landing_is_announced_and_a_person_s_hold_prevents_it(make):
    node = make(limits={"land_unattended": 60.0}, has_landing_button=True)
    node.landing = lambda now_s: Landing.LANDS
    said = []

    def pass_to(time_s):
        node.now_s = began_s + time_s
        node.pass_second()
        said.append(node.conditions["landing"])

    node.arbiter.limits.flew(True, node.now_s)
    assert node.send(CMD_VEL) == (Rank.COMMAND, STILL)
    began_s = node.now_s
    for time_s in (49.0, 51.0, 61.0):
        pass_to(time_s)
    reason = "as nobody has commanded it for long: a command, STOP or the helm prevents that"
    assert said == [None, f"it lands within 10 s, {reason}", f"it lands by itself, {reason}"]
    node.call_hold(True)  # as a program that has failed
    pass_to(62.0)
    node.hold._take_wish("7", "Anne pressed STOP")
    pass_to(63.0)
    assert said[3:] == [f"it lands by itself, {reason}", None]
    node.call_hold(False)
    began_s = node.now_s
    for time_s in (49.0, 51.0):
        pass_to(time_s)
    assert [bool(each) for each in said[5:]] == [False, True]


@pytest.mark.parametrize(
    ("limits", "measured", "named"),
    [
        ({"max_height": 3.0}, None, {"limits.max_height", "position"}),
        ({"max_height": 3.0, "fence_radius": 5.0}, None, {"limits.max_height", "limits.fence_radius", "position"}),
        ({"fence_radius": 5.0}, (0.0, None), {"limits.fence_radius", "position"}),
        ({"fence_radius": 5.0}, (None, (0.0, 0.0, 1.0)), {"limits.fence_radius", "heading"}),
        ({"max_height": 3.0}, (0.0, (0.0, 0.0, 1.0)), set()),
        ({"max_speed": 2.0}, None, set()),
    ],
)
def test_a_limit_names_the_measurement_that_it_lacks(make, limits, measured, named):
    """From the configuration on: a vehicle without these reports ignores all velocities."""
    node = make(limits=limits)
    if measured:
        node.observed.measured(*measured)
        node.pass_second()
    problem = node.conditions["unreported"] or ""
    known = {"limits.max_height", "limits.fence_radius", "position", "heading"}
    assert {word for word in known if word in problem} >= named
    assert bool(problem) == bool(named)
    assert (node.send(CMD_VEL, forward=1.0)[0] is Rank.BLIND) == bool(named)


@pytest.mark.parametrize(
    ("position", "allowed"),
    [(None, "only velocities towards the start, at 0.3 m/s"), ((1.0, 0.0, 1.0), "no velocities")],
)
def test_a_doubted_place_is_reported_with_the_velocities_that_remain(make, position, allowed):
    node = make(limits={"fence_radius": 5.0})
    node.observed.measured(0.0, position, velocity=(0.0, 0.0, 0.0))
    for _ in range(40):
        node.now_s += 0.1
        node.observed.doubted(0.0, (0.5, 0.0))
    node.pass_second()
    assert f"the vehicle's is doubted: it gets {allowed}" in node.conditions["odometry"]
    assert (node.send(CMD_VEL, forward=-1.0)[0] is Rank.COMMAND) == (position is None)
    node.now_s += 2.0
    node.pass_second()
    assert "the vehicle's position and heading are stale: it gets no velocities" in node.conditions["odometry"]


def test_a_fence_is_published_once_after_the_first_position(make):
    node = make(limits={"max_speed": 2.0, "fence_radius": 3.0})

    def fences():
        node.pass_second()
        return [message for message in node.latched if isinstance(message, PolygonStamped)]

    assert fences() == []
    node.observed.measured(0.0, (10.0, 0.0, 1.0))
    (fence,) = fences()
    assert fence.header.frame_id == "odom"
    corners = fence.polygon.points
    assert all(math.hypot(corner.x - 10.0, corner.y) == pytest.approx(3.0, abs=1e-5) for corner in corners)
    assert len(fences()) == 1


@pytest.mark.parametrize("is_drone", [True, False])
def test_a_battery_at_8_percent_is_reported_by_default(make, is_drone):
    declared = {each.name: each.default for each in limit_parameters(is_drone=is_drone, tells_battery=True)}
    node = make(limits={"max_speed": 2.0, "low_battery": declared["limits.low_battery"]})
    node.arbiter.limits.charged(0.08, node.now_s - LOW_BATTERY_S)
    node.pass_second()
    assert "15% left (limits.low_battery)" in node.conditions["battery"]


def test_limits_change_in_flight_and_what_was_observed_stays(make):
    node = make(limits={"max_speed": 2.0, "fence_radius": 0.0, "low_battery": 0.2, "land_on_low_battery": False})

    def change(**values):
        node.parameters.update({f"limits.{name}": value for name, value in values.items()})
        node.pass_second()

    def fences():
        return [len(message.polygon.points) for message in node.latched if isinstance(message, PolygonStamped)]

    node.observed.measured(0.0, (1.0, 0.0, 1.0))
    node.observed.measured(0.0, (3.5, 0.0, 1.0))
    node.arbiter.limits.charged(0.1, node.now_s - LOW_BATTERY_S)
    assert node.send(CMD_VEL, forward=1.5)[1].forward == 1.5
    node.logged.clear()
    change(max_speed=0.5, fence_radius=20.0)
    assert node.decided()[1].forward == 0.5
    assert node.logged == ["limits.max_speed changed from 2 to 0.5.", "limits.fence_radius changed from 0 to 20."]
    assert len(fences()) == 1
    assert node.observed.start == (1.0, 0.0, 1.0)
    change(max_speed=0.0, fence_radius=2.5)
    assert node.decided()[1].forward < 0.1, "at the edge about the first position"
    node.observed.doubted()
    assert node.decided()[0] is Rank.BLIND
    change(fence_radius=0.0)
    assert node.decided()[1].forward == 1.5
    assert fences()[-1] == 0
    node.landing = lambda now_s: Landing.LANDS
    change(land_on_low_battery=True)
    assert node.decided()[0] is Rank.LANDING, "the battery has been low since before"
    change(low_battery=0.05)
    assert node.decided()[1].forward == 1.5
    node.logged.clear()
    node.pass_second()
    assert node.logged == []
