# SPDX-License-Identifier: Apache-2.0
"""Invariants: what must hold in every life, each with its name and its promise."""

import math
from collections import Counter, deque
from types import SimpleNamespace
from typing import NamedTuple

from vehicle import ZERO
from virtual_link import CLIENT, SERVER
from virtual_time import EPOCH_S

from drone_bridge.wire.counters import Counter as Count
from drone_bridge.wire.counters import FaultCounter

#: Time until a decision is on the wire of a calm vehicle, s; and after a stop of the bridge, its own timeout besides.
DECIDED_S, LAST_WORDS_S = 0.3, 1.0
#: Time until a vehicle must be neutral, whatever happens to its network, unless that is cut, s.
WORST_S = 9.0
#: Time without reports after which it is neutral, and for which an old velocity may be driven in bad weather, s.
BLIND_S, OLD_S = 9.0, 5.5
#: Speed that odometry may show at first when the vehicle has stopped, m/s, and time after which it must be 0, s.
STANDING_M_S, LONG_REST_S = 0.02, 20.0
#: Distance beyond a fence, and from a goal, that is allowed, m.
BEYOND_M, AT_GOAL_M = 0.6, 0.3
#: What the place that follows from the told velocities is off, of the way.
UNSURE = 0.02
#: Times after which a vehicle moves as told, and sees its way again, s; a drone's allowed difference in odom, m/s; and
#: its heading near which a pose may seem to begin again.
STEADY_S, UNSEEN_S, FLOWN_M_S, NEARLY_0_RAD = 3.0, 3.0, 1.0, 0.4
#: Period in which a drone's way is compared, s; offset, m, and share of it that odom may differ by.
FLOWN_PERIOD_S, FLOWN_M, FLOWN_SHARE = 2.0, 0.5, 0.3
#: Time in which packets are counted, s.
STEADY_PERIOD_S = 20.0
#: Time until a stop is acknowledged, s.
STOP_ROUND_TRIP_S = 0.012
#: Time after an outage of commands until a drone's control knows again how late their effect is, s.
DELAY_KNOWN_S = 10.0
#: Velocity that a drone follows in any wind, m/s.
LEAST_M_S = 0.5
#: Time of a landing beside its descent, of a disturbance after which nothing is known of a flight, and from a request
#: to its effect, s; least velocity of a descent, m/s.
LANDS_S, LONG_S, ASKED_S, SINKS_M_S = 25.0, 20.5, 6.0, 0.4


class Row(NamedTuple):
    """Invariant: its period, s, and the function that returns what breaks it, or "" or None."""

    name: str
    promise: str
    period_s: float
    problem: object


class Invariants:
    """Judge of one life. All measurements are the wire's, the emulated body's, or the log's."""

    def __init__(self, home):
        self._home, self._life, self.checks = home, home.life, Counter()
        self._sizes, self._logged, self._packets, self._rates, self._problems = [], 0, 0, {}, Counter()
        self._way = self._unseen_m = 0.0
        self._rest, self._odometry, self._is_long = None, None, False
        self._grounded_s = self._life.now_s
        self._stood, self._looked_s, self._cause, self._idle_s = False, self._life.now_s, None, 0.0
        self._from_m = 0.0  # height at which an unattended drone was left
        self._unreached_s = self._seen_s = self._life.now_s  # when no command, or a report, certainly arrived last
        self._pairs = deque()
        #: Times at which the reported motion was doubted.
        self.doubts, self._is_doubted = 0, False
        self._stood_run, self._stood_at, self._stands_s = 0, None, 0.0

    def begin(self):
        for row in ROWS:
            self._judge(row)

    def _judge(self, row):
        """Check a row, and schedule its next check, which is later in a drowsy life."""
        self._life.after(max(row.period_s, 2.0 * self._life.drowsy_s), lambda: (self._check(row), self._judge(row)))

    def _check(self, row):
        problem = row.problem(self)
        if problem is not None:  # None: not applicable now
            self.checks[row.name] += 1
        if problem:
            self._life.fault(row.name, f"{problem} ({row.promise})")

    @property
    def is_calm(self):
        """Whether vehicle, network and bridge have been undisturbed for so long that all promises hold."""
        return self._home.nature.calm_s > self._home.vehicle.RECONNECTS_S

    # What the vehicle is told.

    def fenced(self):
        """A vehicle whose odometry was never disturbed stays in its fence, but for the way that it went unseen."""
        home = self._home
        if not home.vehicle.fence_m or not home.vehicle.has_odometry or home.nature.loses_pose:
            return None
        away, way = math.hypot(*home.vehicle.place), home.vehicle.motion.way
        self._unseen_m += way - self._way if home.nature.calm_s < UNSEEN_S else 0.0
        self._way = way
        drift = home.vehicle.DRIFT * home.vehicle.motion.turned
        allowed = (1.0 + drift) * home.vehicle.fence_m + BEYOND_M + self._unseen_m + UNSURE * way
        return away > allowed and f"{away:.2f} m from the start"

    def _look(self):
        """Note whether commands reach the vehicle, and reports the bridge, in whatever weather."""
        home, now_s = self._home, self._life.now_s
        is_alive = home.is_bridge_up and home.vehicle.is_on and not home.vehicle.process.is_stalled
        if not is_alive or home.network.is_cut(SERVER):
            self._unreached_s = now_s
        if not is_alive or not home.network.is_cut(CLIENT):
            self._seen_s = now_s
        return now_s - self._unreached_s - max(home.network.late_s)

    def neutral(self):
        reached_s = self._look()
        wanted, for_s = self._home.intent.wanted()
        vehicle = self._home.vehicle
        if min(self._life.now_s - self._seen_s, reached_s) > BLIND_S and vehicle.NEEDS_REPORTS:
            return vehicle.is_moving and f"told {vehicle.told}, and nothing of it is seen"
        if wanted != ZERO:
            return None
        if vehicle.flies_by_goals:  # zero velocity is flown
            for_s = min(for_s, self._home.intent.uncommanded_s) if vehicle.HOVERS else 0.0
        if for_s <= DECIDED_S or (not self.is_calm and min(for_s, reached_s) <= WORST_S):
            return None
        return vehicle.is_moving and f"told {vehicle.told}, {for_s:.2f} s after the end of the last command"

    def newest(self):
        """In any weather, it stops unless it follows the newest velocity."""
        wanted, for_s = self._home.intent.wanted()
        vehicle, reached_s = self._home.vehicle, self._life.now_s - self._unreached_s - max(self._home.network.late_s)
        for_s = min(for_s, self._life.now_s - vehicle.motion.blocked_s)
        if wanted in (None, ZERO) or min(for_s, reached_s) < OLD_S or vehicle.flies_by_goals or vehicle.fence_m:
            return None
        is_other = vehicle.is_moving and not _are_same(vehicle.told, vehicle.limited(wanted), vehicle.QUANTUM)
        return is_other and f"told {vehicle.told} for {wanted}, {for_s:.2f} s later"

    def last_words(self):
        home = self._home
        nature, vehicle = home.nature, home.vehicle
        after_s = self._life.now_s - nature.bridge_disturbed_s
        is_alone = nature.bridge_disturbed_s - nature.disturbed_s > vehicle.RECONNECTS_S
        if home.is_bridge_up or not is_alone or not vehicle.has_last_words or after_s < LAST_WORDS_S:
            return None
        is_moving = vehicle.told != ZERO or vehicle.cleans
        return is_moving and f"told {vehicle.told}, {after_s:.2f} s after the bridge has stopped"

    def followed(self):
        home, vehicle = self._home, self._home.vehicle
        wanted, for_s = home.intent.wanted()
        for_s = min(for_s, self._life.now_s - vehicle.motion.blocked_s)
        is_far = self._life.now_s > home.nature.far_s and for_s > STEADY_S
        if wanted in (None, ZERO) or for_s < 1.0 or not (self.is_calm or is_far) or vehicle.flies_by_goals:
            return None
        bounded = vehicle.limited(wanted)
        if vehicle.fence_m and not self._is_deep_inside(math.hypot(*bounded[:2])):
            return None
        is_same = _are_same(vehicle.told, bounded, vehicle.QUANTUM)
        return "" if is_same else f"told {vehicle.told} for {wanted}, which is {bounded} within its maxima"

    def _is_deep_inside(self, speed):
        """Return whether a vehicle whose odometry was never disturbed has no reason yet to brake before its fence."""
        home = self._home
        left_m = home.vehicle.fence_m - math.hypot(*home.vehicle.place) - BEYOND_M
        return home.nature.began_s == -math.inf and left_m > speed + speed**2

    def bounded(self):
        vehicle = self._home.vehicle
        if not all(map(math.isfinite, vehicle.told)):
            return f"told {vehicle.told}"
        return vehicle.problem()

    def obeys(self):
        """The emulated body does what it is told."""
        vehicle, body = self._home.vehicle, self._home.vehicle.body()
        now_s = self._life.now_s
        if body is None or not self.is_calm or now_s - vehicle.motion.changed_s < 3.0:
            return None
        is_same = _are_same(body, vehicle.told, vehicle.QUANTUM + 0.01)
        return "" if is_same else f"the body moves by {body}, told {vehicle.told}"

    def rests(self):
        """A drone without a command comes to rest."""
        home = self._home
        wanted, for_s = home.intent.wanted()
        if wanted != ZERO or for_s < 6.0 or not self.is_calm or home.nature.calm_s < DELAY_KNOWN_S:
            return None
        return home.vehicle.restless()

    def moves(self):
        """A drone that flies moves while it is commanded to."""
        vehicle = self._home.vehicle
        wanted, for_s = self._home.intent.wanted()
        if wanted is None or not vehicle.flies_by_goals or vehicle.phase in (*vehicle.STANDING, *vehicle.LANDING):
            self._grounded_s = self._life.now_s
            return None
        for_s = min(for_s, self._life.now_s - self._grounded_s - ASKED_S)
        asked = math.hypot(*wanted[:2])
        if asked < LEAST_M_S or for_s < 3.0 or not self.is_calm:
            return None
        return vehicle.speed < 0.2 * asked and f"told to fly at {asked:.2f} m/s, it flies at {vehicle.speed:.2f} m/s"

    def takes_off(self):
        """A drone with a button takes off only when it is pressed."""
        home, vehicle = self._home, self._home.vehicle
        stood, self._stood = self._stood, vehicle.stands
        if "takeoff" not in vehicle.requests or not stood or vehicle.stands:
            return None
        waits = home.intent.is_goal_open or any(each.name == "takeoff" for each in home.requests)
        idle_s = self._life.now_s - home.asked_s
        return not waits and idle_s > ASKED_S and f"it takes off, {idle_s:.0f} s after the last request"

    def lands(self):
        """A drone that nobody commands lands: what counts is the calm time, however often its link is lost."""
        home, vehicle = self._home, self._home.vehicle
        since_s, self._looked_s = self._life.now_s - self._looked_s, self._life.now_s
        wanted, _ = home.intent.wanted()
        is_by_person = home.intent.held and home.intent.is_by_person
        cause = home.user.acted_s, home.asked_s, home.bridge_runs, home.nature.bridge_disturbed_s, vehicle.runs
        if cause != self._cause or wanted != ZERO or is_by_person or vehicle.stands or home.nature.lasts_s > LONG_S:
            self._cause, self._idle_s, self._from_m = cause, 0.0, vehicle.height
        elif home.nature.calm_s > since_s:
            self._idle_s += since_s
        lands_s = LANDS_S + self._from_m / SINKS_M_S
        return self._idle_s > vehicle.unattended_s + lands_s and f"it flies, unattended for {self._idle_s:.0f} calm s"

    # The link and its reports.

    def connected(self):
        if not self.is_calm:
            return None
        report, vehicle = self._home.bridge.report, self._home.vehicle
        is_told = f"{report.state!r}: told {vehicle.told}, vehicle on: {vehicle.is_on}"
        has_reports = "navdata" not in vehicle.conditions()  # else its GUI was never asked for them
        return "" if report.is_open and not (report.is_silent and has_reports) else is_told

    def healthy(self):
        """No condition without a cause, and none is missing."""
        home = self._home
        conditions = dict(home.bridge.report.conditions)
        is_doubted = "doubt" in conditions and "doubt" not in home.vehicle.conditions()
        self.doubts += is_doubted and not self._is_doubted
        self._is_doubted = is_doubted
        wanted, for_s = home.intent.wanted()
        before, self._problems = self._problems, Counter(home.bridge.report.counts)
        if home.bridge_up_s < 3.0:
            return None
        is_off = not home.vehicle.is_on and home.nature.lasts_s > home.vehicle.RECONNECTS_S
        if is_off and home.bridge.report.is_open:
            is_told = home.bridge.report.is_silent or "navdata" in conditions
            return "" if is_told else "connected with a vehicle that is switched off"
        if home.intent.held_for_s > 2.0 and "hold" not in conditions:
            return f"held, and its conditions are {conditions}"
        quiet_s = self._life.now_s - home.user.acted_s
        if not self.is_calm or quiet_s < 5.0 or wanted != ZERO or for_s < 5.0 or home.intent.held is not False:
            return None
        known = tuple(home.vehicle.conditions())
        if home.vehicle.fence_m and home.vehicle.runs > home.vehicle_run:  # it may have moved unseen
            known = *known, "fence", "odometry"
        odd = {name: each.sentence for name, each in conditions.items() if name not in known}
        odd |= {
            n: grown
            for n, grown in (self._problems - before).items()
            if isinstance(Count.declared.get(n), FaultCounter)
        }
        return odd and f"it rests, and its conditions are {odd}"

    def shared(self):
        """Judge a bridge whose vehicle another program has: it is silent about that to nobody, and names it."""
        if self._home.intent.held is not False:
            return
        conditions = [each.sentence for each in self._home.bridge.report.conditions.values()]
        if not any(self._home.vehicle.OTHER in each for each in conditions):
            self._life.fault("healthy", f"{self._home.vehicle.OTHER} has the vehicle, and its conditions: {conditions}")

    def answered(self):
        """Each request has an outcome."""
        self._home.requests = [each for each in self._home.requests if each.process.is_alive]
        late = [each for each in self._home.requests if self._life.now_s - each.asked_s > 40.0]
        return late and f"{late[0].name} has no outcome after {self._life.now_s - late[0].asked_s:.0f} s"

    # Odometry.

    def odometry(self):
        """Sample odometry at each rest, and compare the way since the last one with our own."""
        home, vehicle = self._home, self._home.vehicle
        wanted, for_s = home.intent.wanted()
        if not vehicle.has_odometry:
            return None
        if self._rest and self._rest.key != home.bridge_runs:
            self._rest = None
        elif self._rest and (not self.is_calm or self._rest.runs != vehicle.runs):
            self._rest.is_undisturbed = False
        if not self.is_calm or wanted != ZERO or for_s < 3.0 or not home.is_bridge_up:
            self._odometry = None
            return None
        if self._odometry is None or (for_s > LONG_REST_S) is not self._is_long:
            self._is_long = for_s > LONG_REST_S
            self._odometry = deque(maxlen=2)
            kept = SimpleNamespace(put=self._odometry.append, is_latched=False)
            home.graph.subscriptions["/odom"].append(kept)
            self._life.after(0.6, lambda: home.graph.subscriptions["/odom"].remove(kept))
            return None
        if len(self._odometry) < 2 or self._odometry[0] is None:
            return None
        before, sample = self._rest, self._sample(home.bridge_runs)
        self._odometry[0] = None
        self._rest = sample
        if max(map(abs, sample.speeds)) > (0.0 if self._is_long else STANDING_M_S):
            return f"at rest for {for_s:.1f} s, and odom moves by {sample.speeds}"
        goal, home.pilot.reached = home.pilot.reached, None
        if goal and math.dist(goal, sample.odom[:2]) > AT_GOAL_M:
            return f"at {sample.odom}, after the goal {goal} was reached"
        return self._compare(before, sample) if before else None

    def moved(self, message):
        """Judge a message of odometry: it is sane, and its velocity is that of a vehicle that is driven steadily."""
        home, pose, v = self._home, message.pose.pose, message.twist.twist.linear
        at, q, turn = pose.position, pose.orientation, message.twist.twist.angular.z
        told, (wanted, for_s) = home.vehicle.told, home.intent.wanted()
        values = at.x, at.y, at.z, v.x, v.y, v.z, turn, *message.pose.covariance
        if not all(map(math.isfinite, values)) or abs(math.hypot(q.w, q.x, q.y, q.z) - 1.0) > 1e-6:
            self._life.fault("odometry", f"odom is {values}, {q}")
        stamp = message.header.stamp
        age_s = self._life.now_s - (stamp.sec - EPOCH_S + stamp.nanosec / 1e9)
        if self.is_calm and not -0.1 < age_s < 1.0:
            self._life.fault("odometry", f"odom is {age_s:.2f} s old")
        flown = math.hypot(v.x, v.y, v.z)
        is_steady = self.is_calm and wanted is not None and for_s > STEADY_S
        if is_steady and home.vehicle.is_drone and abs(flown - home.vehicle.speed) > FLOWN_M_S + 0.5 * flown:
            self._life.fault("odometry", f"a drone moves by {flown:.2f} m/s in odom, truly {home.vehicle.speed:.2f}")
        is_steady = is_steady and self._life.now_s - home.vehicle.motion.changed_s > STEADY_S
        if is_steady and home.vehicle.has_odometry and home.vehicle.body() is not None:
            for got, own in ((v.x, told.forward), (turn, told.turn)):
                if abs(got - own) > 0.1 + 0.5 * abs(own):
                    self._life.fault("odometry", f"it moves by {got:.2f} in odom, told {told}")

    def flown(self):
        """Compare the last steps of odometry with those of the emulated body."""
        home, vehicle, pairs = self._home, self._home.vehicle, self._pairs
        stands = vehicle.stands and "takeoff" in vehicle.requests and self._stood_run == home.bridge_runs
        self._stands_s = self._stands_s + FLOWN_PERIOD_S if stands else 0.0
        stood, self._stood_at, self._stood_run = self._stood_at, None, home.bridge_runs
        if self._stands_s > 3 * FLOWN_PERIOD_S:  # what was sampled then stood, too
            self._stood_at = pairs[-1][0] if pairs else stood
        if stood and self._stood_at:
            x, y, turn = _moved(stood, self._stood_at)
            if math.hypot(x, y) > FLOWN_M or abs(turn) > FLOWN_SHARE:
                return f"it stands, and odom leapt by {x:.2f}, {y:.2f} m, and {turn:.2f} rad"
        if vehicle.flown is None or not home.is_bridge_up or not self.is_calm:
            pairs.clear()
            return None
        told = None
        if len(pairs) > 1:
            (odom, truth), (then_odom, then_truth) = pairs.popleft(), pairs[0]
            (x, y, _), (true_x, true_y, turn) = told = _moved(odom, then_odom), _moved(truth, then_truth)
            allowed = FLOWN_M + (FLOWN_SHARE + abs(turn)) * math.hypot(true_x, true_y)
            told = math.hypot(x - true_x, y - true_y) > allowed and f"odom moved by {told[0]}, its body by {told[1]}"
            wanted, for_s = home.intent.wanted()
            if wanted and min(for_s, self._life.now_s - self._grounded_s) > STEADY_S + FLOWN_PERIOD_S:
                asked = abs(wanted.turn * FLOWN_PERIOD_S)
                if not 0.5 * asked - 0.1 < abs(turn) < 1.1 * asked + 0.1:
                    return f"told to turn by {asked:.2f} rad, its body turned by {turn:.2f}"
        number = len(pairs)
        put = lambda message: len(pairs) == number and pairs.append((_planar(message), vehicle.flown))  # noqa: E731
        kept = SimpleNamespace(put=put, is_latched=False)
        home.graph.subscriptions["/odom"].append(kept)
        self._life.after(0.5, lambda: home.graph.subscriptions["/odom"].remove(kept))
        return told

    def continuous(self):
        """A bridge continues its odometry, whose pose begins again once with each start of the vehicle."""
        home, number = self._home, self._home.bridge.report.counts["pose_restarts"]
        most, flown = home.vehicle.runs - home.vehicle_run, home.vehicle.flown
        if number > most and home.nature.calm_s < UNSEEN_S and flown and abs(flown[2]) < NEARLY_0_RAD:
            home.vehicle_run -= 1  # it may have turned unseen to where a pose begins
            return None
        return number > most and f"it has begun {number} times again, the vehicle {most} times"

    def _sample(self, key):
        message, motion = self._odometry[-1], self._home.vehicle.motion
        motion.advance()
        twist = message.twist.twist
        speeds = twist.linear.x, twist.linear.y, twist.angular.z
        truth = motion.x, motion.y, motion.heading
        ways = {"way": motion.way, "turned": motion.turned, "stops": motion.stops, "unseen": motion.unseen}
        runs = {"key": key, "runs": self._home.vehicle.runs, "is_undisturbed": True}
        return SimpleNamespace(**runs, odom=_planar(message), truth=truth, speeds=speeds, **ways)

    def _compare(self, before, now):
        vehicle = self._home.vehicle
        ways = _moved(before.odom, now.odom), _moved(before.truth, now.truth)
        (x, y, turn), (true_x, true_y, true_turn) = ways
        way, turned = now.way - before.way, now.turned - before.turned
        if not before.is_undisturbed and max(way, turned) > 0.001:
            return None  # what it does while it is disturbed may be unknown
        off, off_turn = math.hypot(x - true_x, y - true_y), abs(math.remainder(turn - true_turn, math.tau))
        late = STOP_ROUND_TRIP_S * (now.stops - before.stops)  # a stop counts once it is acknowledged
        unseen = now.unseen - before.unseen
        allowed_turn = vehicle.ODOM_RAD + vehicle.ODOM_SHARE * turned + 2.0 * late + unseen / vehicle.motion.axle_m
        allowed = vehicle.ODOM_M + late + unseen / 2 + (vehicle.ODOM_SHARE + min(2.0, allowed_turn)) * way
        if off > allowed or off_turn > allowed_turn:
            return f"odom moved by {ways[0]}, and the vehicle was told to move by {ways[1]}, over {way:.2f} m"
        return ""

    # Hours.

    def quiet(self):
        """Few lines of log, and fewer in a calm minute without acts."""
        home = self._home
        number, self._logged = sum(home.line_counts.values()) - self._logged, sum(home.line_counts.values())
        is_idle = min(self._life.now_s - home.acts.newest_s, home.nature.calm_s) > 120.0
        is_news = home.vehicle.is_drone or "battery" in home.vehicle.conditions()  # it lands by itself, or becomes low
        most = (4 if is_news else 1) if is_idle and home.most_lines == 60 else home.most_lines
        return number > most and f"{number} lines in a minute: {home.line_counts.most_common(3)}"

    def bounded_memory(self):
        home = self._home
        if not home.is_bridge_up:
            return None
        self._sizes.append(sizes_of((vars(home.bridge), *home.vehicle.roots())))
        if len(self._sizes) < 30 or len(self._sizes) % 10:
            return None
        for name in self._sizes[-1]:
            early, late = max(each[name] for each in self._sizes[5:15]), min(each[name] for each in self._sizes[-10:])
            if late > 1.3 * early + 200:  # queues of what is not answered have up to 64 entries
                return f"{name} has {early} elements at first, and {late} later"
        return ""

    def steady(self):
        """A calm link carries no more packets per second after hours than in the beginning."""
        home, vehicle = self._home, self._home.vehicle
        packets, self._packets = vehicle.packets - self._packets, vehicle.packets
        acted_s = max(home.user.acted_s, home.dozed_s, home.acts.newest_s)
        wanted, for_s = home.intent.wanted()  # a goal commands without acts
        calm_s = min(home.nature.calm_s - vehicle.RECONNECTS_S, self._life.now_s - acted_s, for_s)
        if wanted != ZERO or calm_s < STEADY_PERIOD_S:
            return None
        first = self._rates.setdefault((self._life.drowsy_s > 0.0, vehicle.stands), packets)
        return packets > 1.5 * first + 20 and f"{packets} packets in {STEADY_PERIOD_S:g} s, and {first} at first"


ROWS = (
    Row("neutral", "without a command, or on hold, the vehicle is told to stop in time", 0.1, Invariants.neutral),
    Row("last words", "a killed or stalled bridge leaves a vehicle that was told to stop", 0.1, Invariants.last_words),
    Row("newest", "in no weather is an old velocity driven on", 0.1, Invariants.newest),
    Row("followed", "the command, within the maxima", 0.1, Invariants.followed),
    Row("fenced", "the vehicle stays in its fence", 0.5, Invariants.fenced),
    Row("bounded", "nothing beyond the vehicle's range", 0.1, Invariants.bounded),
    Row("obeys", "the emulated body moves as told", 0.5, Invariants.obeys),
    Row("rests", "a drone without a command comes to rest", 0.5, Invariants.rests),
    Row("moves", "a drone that flies follows a velocity", 0.5, Invariants.moves),
    Row("takes off", "a drone with a button takes off when it is pressed", 0.1, Invariants.takes_off),
    Row("lands", "a drone that nobody commands lands", 1.0, Invariants.lands),
    Row("connected", "after the last disturbance, in time", 1.0, Invariants.connected),
    Row("healthy", "conditions have causes, and causes conditions", 1.0, Invariants.healthy),
    Row("requests are answered", "each request has an outcome", 1.0, Invariants.answered),
    Row("flown", "odometry of a drone shows the way that its body flies", FLOWN_PERIOD_S, Invariants.flown),
    Row("odometry", "it shows the way that the vehicle was told to go, and rest", 0.3, Invariants.odometry),
    Row("continuous", "the pose begins again only with the vehicle", 1.0, Invariants.continuous),
    Row("quiet", "the log has few lines", 60.0, Invariants.quiet),
    Row("bounded memory", "nothing grows", 20.0, Invariants.bounded_memory),
    Row("steady", "as many packets per second after hours as in the beginning", STEADY_PERIOD_S, Invariants.steady),
)


def _planar(message):
    """Return the place and the heading of odometry."""
    at, q = message.pose.pose.position, message.pose.pose.orientation
    return at.x, at.y, math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z))


def _moved(before, then):
    """Return a way ahead and to the left, and its turn."""
    (x0, y0, yaw0), (x1, y1, yaw1) = before, then
    dx, dy, cos, sin = x1 - x0, y1 - y0, math.cos(yaw0), math.sin(yaw0)
    return cos * dx + sin * dy, cos * dy - sin * dx, math.remainder(yaw1 - yaw0, math.tau)


def _are_same(got, wanted, allowed):
    return all(abs(one - other) <= allowed + 0.02 * abs(other) for one, other in zip(got, wanted, strict=True))


def sizes_of(root, limit=200_000):
    """Return the number of elements of the containers that objects of drone_bridge reach, by class and attribute."""
    seen, todo, elements = set(), [(root, "")], Counter()
    while todo and len(seen) < limit:
        each, name = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            elements[name] += len(each)
            todo += ((value, name) for value in each.values())
        elif isinstance(each, deque) and each.maxlen is not None:
            elements[name] += each.maxlen  # it may fill late
        elif name == "Measurement.scan":
            elements[name] += 1  # its size is fixed, and a second one is beyond the margin
        elif isinstance(each, (list, tuple, set, frozenset, deque)):
            elements[name] += len(each)
            todo += ((value, name) for value in each)
        elif isinstance(each, (bytes, bytearray, str)):
            elements[name] += len(each) // 64
        elif (kind := type(each)).__module__.startswith("drone_bridge"):
            slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if hasattr(each, name)]
            own = getattr(each, "__dict__", {}) | {name: getattr(each, name) for name in slots}
            todo += ((value, f"{kind.__name__}.{name}") for name, value in own.items())
    return elements
