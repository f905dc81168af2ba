# SPDX-License-Identifier: Apache-2.0
"""Nature: what happens to a network, to processes and to a vehicle without anybody's intention."""

import math

from virtual_link import CLIENT, SERVER, SIDES

#: Number of looks for a command, every half a second.
IN_MOTION_LOOKS = 120
#: Time after which it is used to a slower network, s.
FAR_S = 25.0


class Nature:
    """Disturbances, one at a time. `calm_s` is the time since the last one has ended."""

    EVENTS = {  # noqa: RUF012
        "cut": 3, "deaf": 3, "mute": 3, "slow": 3, "late": 4, "lossy": 2, "split": 2, "far": 3, "stall_bridge": 3,
        "stall_device": 2, "restart_bridge": 2, "kill_bridge": 2, "restart_device": 2, "hang_device": 4,
        "stall_programs": 1, "share": 2,
    }  # fmt: skip

    #: Those that do not mostly happen while it is commanded.
    AT_ANY_TIME = "split", "far", "stall_programs", "share"

    #: Those of the network, in which owners press buttons, and often several times in a row.
    WEATHER = "cut", "deaf", "mute", "slow", "late", "lossy", "split"

    #: Those after which the place is known, but for the way of meanwhile.
    KEEP_POSE = *WEATHER, "far", "stall_bridge", "stall_device", "stall_programs"

    def __init__(self, home, mean_s):
        """`mean_s`: mean time between two disturbances; infinity for none."""
        self._home, self._life, self._acts, self._rng = home, home.life, home.acts, home.acts.rng
        self._weights = {name: weight for name, weight in self.EVENTS.items() if home.vehicle.allows(name)}
        if home.is_healthy:
            self._weights = {name: self.EVENTS[name] for name in ("slow", "lossy", "stall_bridge", "stall_programs")}
        self._mean_s, self._network = mean_s, home.network
        #: Times of the last disturbance, of the network or vehicle, and of a process of the bridge.
        self.disturbed_s, self.bridge_disturbed_s = self._life.now_s, -math.inf
        self._disturbing, self.began_s = 0, -math.inf
        self._weather_number, self._weather_s = 0, -math.inf
        #: Time from which it is used to a slower network.
        self.far_s = math.inf
        #: Whether odometry may have been disturbed so far.
        self.loses_pose = False

    @property
    def calm_s(self):
        return 0.0 if self._disturbing else self._life.now_s - self.disturbed_s

    @property
    def fair_s(self):
        """Time without anything but stalls and restarts of the bridge, s."""
        return 0.0 if self._weather_number else self._life.now_s - self._weather_s

    def live(self):
        home = self._home
        weights = self._weights if home.is_healthy else self._acts.swarm(self._weights)
        while self._mean_s < math.inf and not self._acts.have_ended:
            yield self._rng.expovariate(1.0 / self._mean_s)
            if self._acts.have_ended:
                return
            name = self._rng.choices([*weights], [*weights.values()])[0]
            for _ in range(IN_MOTION_LOOKS if name not in self.AT_ANY_TIME and self._rng.random() < 0.7 else 0):
                if home.intent.is_commanded or home.intent.is_goal_open or home.requests:
                    break
                yield 0.5
            for _ in range(self._rng.choice((1, 1, 2, 6)) if name in self.WEATHER else 1):
                if name in self.WEATHER and home.vehicle.requests and self._rng.random() < 0.5:
                    self._acts.play(home.user.request())
                yield from self.disturb(name, getattr(self, name)())
                yield self._rng.uniform(1.0, 15.0)

    @property
    def lasts_s(self):
        return self._life.now_s - self.began_s if self._disturbing else 0.0

    def disturb(self, name, events):
        self._acts.begin("nature", name)
        self.loses_pose = self.loses_pose or name not in self.KEEP_POSE
        self._disturbing, self.began_s = self._disturbing + 1, self._life.now_s
        is_weather = name not in ("stall", "restart")  # as by Actors
        self._weather_number += is_weather
        yield from events
        self._weather_number -= is_weather
        self._weather_s = self._life.now_s if is_weather else self._weather_s
        self._disturbing, self.disturbed_s = self._disturbing - 1, self._life.now_s

    # The network.

    def cut(self):
        yield from self._outage(*SIDES)

    def deaf(self):
        """Let commands arrive, but no reports."""
        yield from self._outage(CLIENT)

    def mute(self):
        """Let reports arrive, but no commands."""
        yield from self._outage(SERVER)

    def _outage(self, *sides):
        seconds = self._rng.choice((0.1, 0.5, 1.5, 5.0, 12.0, 20.0, 70.0))
        for side in sides:
            self._network.cut_until_s[side] = self._life.now_s + seconds
        yield seconds

    def slow(self):
        yield from self._weather(delay_s=self._rng.choice((0.05, 0.4, 0.5)), jitter_s=self._rng.choice((0.01, 0.1)))

    def late(self):
        """Delay one direction."""
        late_s = [0.0, 0.0]
        late_s[self._rng.choice(SIDES)] = self._rng.choice((0.2, 0.7, 2.0))
        yield from self._weather(late_s=late_s)

    def far(self):
        """Put it at the end of a slower network, for longer than it needs to get used to that."""
        self._network.late_s, self.far_s = [0.12, 0.12], self._life.now_s + FAR_S
        yield self._rng.choice((60.0, 180.0))
        self.far_s = math.inf
        self._network.calm()
        yield 1.0

    def lossy(self):
        yield from self._weather(loss=self._rng.choice((0.02, 0.1, 0.5)), duplicates=0.02)

    def split(self):
        yield from self._weather(split=0.5)

    def _weather(self, **values):
        vars(self._network).update(values)
        yield self._rng.uniform(1.0, 30.0)
        self._network.calm()
        yield 1.0

    # Processes.

    def stall_bridge(self):
        seconds = self._rng.choice((0.2, 0.5, 2.0, 8.0))
        self._home.stall_bridge(seconds)
        yield seconds

    def stall_programs(self):
        seconds = self._rng.choice((0.5, 3.0))
        self._home.programs.stall(seconds)
        yield seconds

    def stall_device(self):
        seconds = self._rng.choice((0.1, 0.3, 1.0, 5.0))
        self._home.vehicle.process.stall(seconds)
        yield seconds

    def restart_bridge(self):
        self._home.end_bridge()
        yield self._rng.choice((0.5, 3.0, 30.0))
        self._home.start_bridge()

    def kill_bridge(self):
        self._home.kill_bridge()
        yield self._rng.choice((0.5, 3.0, 30.0))
        self._home.start_bridge()

    def share(self):
        """Another program takes the vehicle while the bridge is away, and leaves later."""
        self._home.end_bridge()
        yield 1.0
        self._home.vehicle.share(True)
        yield 1.0
        self._home.start_bridge()
        yield 20.0
        self._home.invariants.shared()
        yield self._rng.choice((1.0, 30.0))
        self._home.vehicle.share(False)

    def hang_device(self):
        """Let its program hang until somebody starts it anew."""
        self._home.vehicle.process.stall(math.inf)
        yield self._rng.choice((3.0, 10.0, 30.0))
        yield from self.restart_device()

    def restart_device(self):
        self._home.vehicle.switch_off(closes=self._rng.random() < 0.5)
        yield self._rng.choice((0.5, 3.0, 3.0, 30.0, 30.0, 600.0))
        self._home.vehicle.switch_on()
