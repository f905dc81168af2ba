# SPDX-License-Identifier: Apache-2.0
"""Which stop gets through what, by itself: each of them against a drone that ignores the bridge, in virtual time."""

import pytest
from ardrone_talk import OtherClient, Talk

from drone_bridge.ar_drone.flight import FlightPhase
from drone_bridge.ardrone import codec
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.arbiter import Rank

FORWARD = Shares(pitch=0.5)


class Scene(Talk):
    """Bridge that steers a flying drone forward, and another client, which steers it backward."""

    def __init__(self):
        super().__init__(any_number_after_loss=False, watchdog_s=0.25)
        self.flying()
        self.pilot.wanted = FORWARD
        self.run(0.5)
        self.other = OtherClient(self)
        self.other.connection.next_sequence = 1_000_000

    def send_other(self):
        self.other.send(codec.Pcmd(codec.PROGRESSIVE, pitch=0.5), codec.Ref(True))

    def lose_next(self):
        """Lose the next datagram of commands."""

        def loses(data):
            is_command = data.startswith(b"AT")
            if is_command:
                self.loses = lambda data: False
            return is_command

        self.loses = loses

    def kill(self):
        """Send the last words, as by another process."""
        for datagram in self.session.last_words().neutral:
            if not self.loses(datagram):
                self.drone.receive(datagram, self.now_s)
        self.is_linked = False


def holds(scene):
    scene.pilot.rank, scene.pilot.wanted = Rank.HOLD, None


def releases_the_stick(scene):
    scene.pilot.wanted = None


def ends(scene):
    scene.take(scene.session.end(scene.now_s))


def is_killed(scene):
    scene.kill()


def lands(scene):
    scene.ask("land")


def is_landed_by_a_limit(scene):
    scene.pilot.rank = Rank.LANDING


def cuts_the_motors(scene):
    scene.ask("emergency")


def stray_packet(scene):
    scene.send_other()


def stray_packet_and_loss(scene):
    scene.send_other()
    scene.lose_next()


def stray_packet_without_navdata(scene):
    scene.lose_navdata()
    scene.send_other()


def stall(scene):
    scene.send_other()
    scene.stall(0.1)


def reconnection(scene):
    scene.take(scene.session.lost(scene.now_s))
    scene.take(scene.session.opened(scene.now_s))
    scene.run(0.1)
    scene.send_other()


@pytest.mark.parametrize(
    "hindered", [stray_packet, stray_packet_and_loss, stray_packet_without_navdata, stall, reconnection]
)
@pytest.mark.parametrize(
    ("act", "phases"),
    [
        (holds, ()),
        (releases_the_stick, ()),
        (ends, ()),
        (is_killed, ()),
        (lands, (FlightPhase.LANDING,)),
        (is_landed_by_a_limit, (FlightPhase.LANDING,)),
        (cuts_the_motors, (FlightPhase.EMERGENCY,)),
    ],
)
def test_each_stop_gets_through_by_itself(hindered, act, phases):
    """Within two packets. No detector is needed that the drone ignores the bridge."""
    scene = Scene()
    hindered(scene)
    assert not scene.drone.flight.is_hovering
    act(scene)
    scene.run(0.08)
    assert scene.drone.flight.phase in phases if phases else scene.drone.flight.is_hovering
