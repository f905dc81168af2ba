# SPDX-License-Identifier: Apache-2.0
"""CommandStreams: executor and link take commands in turn. Without DDS, with a fake clock."""

import threading
from types import SimpleNamespace

import pytest
from commanded_node import commanded_nodes
from geometry_msgs.msg import Twist, TwistStamped
from twists import twist

from drone_bridge.ros.commands.command_streams import DROPPED, IDLE_S, LATE_S, PERIOD_S, CommandStreams

FIRST, SECOND = twist(forward=1.0), twist(forward=2.0)


class Taken:
    """Streams of a node, their received messages, and the turns of the link's thread."""

    def __init__(self, node, period_s=PERIOD_S):
        self.node, self.received, self.reported, self.is_valid = node, [], [], True
        self.streams = CommandStreams(node, node.wake, period_s)
        self.streams.add(Twist, "cmd_vel", self._receive)
        self.streams.add(TwistStamped, "cmd_vel_stamped", self._receive)

    def _receive(self, message):
        self.received.append(message)
        self.streams.report(lambda: self.reported.append(message))
        return self.is_valid

    def arrive(self, message, topic="cmd_vel"):
        """Deliver a message: an executor that waits for it takes it immediately."""
        if self.streams.due_s == float("inf"):
            self.node.take[topic](message)
        else:
            self.node.waiting[topic].append(message)

    def take_over(self):
        """Start a flow of commands, and run posted work on the link's thread."""
        self.streams.opened()
        self.arrive(FIRST)
        self.node.posted.pop()(self.node.now_s)
        self.received.clear()
        self.reported.clear()
        self.node.wakes = 0

    def look(self, after_s=0.0):
        self.node.now_s += after_s
        self.streams.after_turn(self.node.now_s)

    def took(self):
        """Return the messages since the last call."""
        received, self.received = self.received, []
        return received


@pytest.fixture
def node(monkeypatch, tmp_path):
    return commanded_nodes(monkeypatch, tmp_path)()


@pytest.fixture
def taken(node):
    return Taken(node)


@pytest.fixture
def flowing(taken):
    """Streams from which the link's thread takes."""
    taken.take_over()
    return taken


def test_without_a_link_the_executor_takes_and_reports_at_once(node, taken):
    taken.arrive(FIRST)
    assert taken.took() == taken.reported == [FIRST]
    assert (node.wakes, node.posted) == (1, [])
    taken.look(1.0)
    assert taken.took() == []


def test_a_command_on_an_open_link_makes_the_link_s_thread_take(node, taken):
    taken.take_over()
    taken.arrive(SECOND)
    assert taken.took() == []
    assert taken.streams.take(node.now_s)
    assert taken.took() == [SECOND]
    assert node.wakes == 0  # its taker has just decided


def test_a_message_that_is_no_command_leaves_the_executor_to_take(node, taken):
    taken.streams.opened()
    taken.is_valid = False
    taken.arrive(FIRST)
    assert (taken.took(), node.posted, node.wakes) == ([FIRST], [], 0)


def test_messages_taken_by_the_executor_are_skipped_by_the_link_thread(node, flowing):
    node.take["cmd_vel"](FIRST)  # the executor was waiting for it
    assert flowing.took() == []


def test_of_several_messages_the_newest_is_received(node, flowing):
    """A parameter may give the subscription a depth. Taken one per turn, messages would always be stale."""
    node.waiting["cmd_vel"] += [FIRST, FIRST, SECOND]
    flowing.streams.take(node.now_s)
    assert flowing.took() == [SECOND]
    flowing.streams.take(node.now_s)
    assert flowing.took() == []


def test_topics_are_taken_in_their_order(node, flowing):
    stamped = TwistStamped(twist=SECOND)
    flowing.arrive(stamped, "cmd_vel_stamped")
    flowing.arrive(FIRST)
    flowing.streams.take(node.now_s)
    assert flowing.took() == [FIRST, stamped]


def test_between_two_decisions_commands_are_taken_and_told_of(node, flowing):
    flowing.arrive(SECOND)
    flowing.look(0.5 * PERIOD_S)
    assert (flowing.took(), node.wakes) == ([], 0)
    assert flowing.streams.due_s == pytest.approx(node.now_s + 0.5 * PERIOD_S)
    flowing.look(0.5 * PERIOD_S)
    assert (flowing.took(), node.wakes) == ([SECOND], 1)


def test_what_is_taken_late_is_dropped(node, flowing):
    flowing.arrive(SECOND)
    flowing.look(LATE_S + 0.01)
    assert flowing.took() == []
    assert node.counts == {DROPPED: 1}
    flowing.arrive(FIRST)
    flowing.look(LATE_S)
    assert flowing.took() == [FIRST]


def test_what_waits_at_the_release_of_a_hold_is_dropped(node, flowing):
    flowing.arrive(SECOND)
    flowing.streams.drop_waiting()
    flowing.streams.take(node.now_s)
    assert flowing.took() == []
    flowing.arrive(FIRST)
    flowing.streams.take(node.now_s)
    assert flowing.took() == [FIRST]


def test_without_commands_the_executor_takes_again(node, flowing):
    for _ in range(30):
        flowing.arrive(FIRST)
        flowing.look(PERIOD_S)
    assert node.executor_wakes == 0
    flowing.took()
    for _ in range(round(IDLE_S / PERIOD_S) + 1):
        assert node.executor_wakes == 0
        flowing.look(PERIOD_S)
    assert node.executor_wakes == 1  # it waits for these topics from now on, too
    flowing.arrive(SECOND)
    assert flowing.took() == [SECOND]


@pytest.mark.parametrize("end", ["closed", "idle"])
def test_refused_messages_keep_nothing_with_the_link_s_thread(node, flowing, end):
    flowing.is_valid = False
    if end == "closed":
        flowing.streams.closed()
    else:
        for _ in range(round(IDLE_S / PERIOD_S) + 1):
            flowing.arrive(FIRST)
            flowing.look(PERIOD_S)
    assert node.executor_wakes == 1
    flowing.took()
    flowing.arrive(SECOND)
    assert flowing.took() == [SECOND]


def test_the_link_s_thread_reports_at_the_end_of_its_turn(node, flowing):
    flowing.arrive(SECOND)
    flowing.streams.take(node.now_s)
    assert flowing.reported == []
    flowing.look()
    assert flowing.reported == [SECOND]
    flowing.arrive(FIRST)
    flowing.streams.take(node.now_s)
    flowing.streams.closed()
    assert flowing.reported == [SECOND, FIRST]


def test_while_one_thread_takes_the_other_does_not_wait_for_it(node, taken):
    taken.streams.opened()
    taken.arrive(FIRST)
    (take_over,) = node.posted

    def receive_slowly(message):
        take_over(node.now_s)
        assert not taken.streams.take(node.now_s)
        return True

    taken.streams.add(Twist, "slow", receive_slowly)
    node.take["slow"](FIRST)
    assert taken.streams.due_s == float("inf")
    take_over(node.now_s)
    assert taken.streams.due_s < float("inf")


def test_a_change_of_type_waits_for_the_thread_that_takes(node, flowing):
    """A subscription in use would be destroyed late, and DDS refuse the next one."""
    seen = []

    def change_meanwhile(message):
        change = threading.Thread(target=flowing.streams.add, args=(TwistStamped, "cmd_vel", flowing.received.append))
        change.start()
        change.join(0.05)
        seen.extend([change, node.types["cmd_vel"]])
        return False

    flowing.streams.add(Twist, "cmd_vel", change_meanwhile)
    flowing.arrive(SECOND)
    flowing.streams.take(node.now_s)
    seen[0].join()
    assert (seen[1], node.types["cmd_vel"]) == (Twist, TwistStamped)


def test_a_stream_that_answers_frames_stays_with_the_executor(node):
    taken = Taken(node, period_s=None)
    taken.streams.opened()
    taken.arrive(FIRST)
    assert (taken.took(), node.posted) == ([FIRST], [])


def test_a_subscription_that_is_being_destroyed_has_no_messages(node, flowing, monkeypatch):
    from rclpy.exceptions import InvalidHandle

    def destroyed(*_):
        raise InvalidHandle("it is being destroyed")

    monkeypatch.setattr("commanded_node.WaitingMessages.__enter__", destroyed)
    assert not flowing.streams.take(node.now_s)


def test_publishers_that_offer_less_than_an_override_requests_are_received(node):
    made = []
    create = node.create_subscription

    def create_reliable(kind, topic, callback, qos, *, qos_overriding_options=None, **options):
        if qos_overriding_options is not None:
            qos = SimpleNamespace(reliability="reliable", durability="volatile", depth=1)
        made.append((qos.reliability, qos_overriding_options is not None))
        return create(kind, topic, callback, qos, **options)

    node.create_subscription = create_reliable
    CommandStreams(node, node.wake).add(Twist, "cmd_vel", lambda message: True)
    assert [is_overridable for _, is_overridable in made] == [True, False]
