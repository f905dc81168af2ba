# SPDX-License-Identifier: Apache-2.0
"""LinkReport: counters, log and /diagnostics of a node's link.

- **Counters** only grow. Some are shown as rates, and the growth of others is a warning.
- **Conditions** are ongoing problems, shown while they last. They are logged at their beginning, then at growing
  intervals, even without subscribers. Other log lines are throttled by the name of their counter, so that one problem
  does not hide another.
- **Silence** of the peer beyond a limit is a warning: see `PeerSilence`.

Three threads use it without a lock. The link's thread and the executor count. The link's thread updates the state after
each turn of its loop. The thread of the reports detects silence, and ends a period once per second: it replaces the
durations, and copies data that others may be changing. It may mix the states of two successive turns, which is good
enough for a report, not for a decision.
"""

import collections
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.node.log_limiter import FIRST_INTERVAL_S, LogLimiters, OngoingLogLimiter
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.peer_silence import PeerSilence
from drone_bridge.session.session import Session
from drone_bridge.wire.counters import Counter, FaultCounter, ProblemCounter, RateCounter

#: Suffix of the name of a node's status on /diagnostics, after the node's full name.
LINK_STATUS = ": link"
#: Key of a status for the silence of the connected peer, s.
PEER_SILENT = "peer_silent_s"
#: Key of a bridge's status for the nodes whose commands its vehicle follows, with their topic.
COMMANDER = "commander"
#: Programs of one system are started in any order: during this time a missing one is not a warning. The third line
#: about an ongoing condition is.
START_S = 3 * FIRST_INTERVAL_S
#: Counter of silences.
SILENCES = FaultCounter("silences")
#: Time without a connection after which advice is logged, once.
ADVICE_AFTER_S = 5.0
#: Place of each condition, by its name. Others follow.
RANKS = {each.key: each.rank for each in Obstacle}
#: Obstacles that explain why a connected peer is silent, or counts as silent.
_EXPLAINING = Obstacle.NO_PACKET, Obstacle.UNGREETED, Obstacle.UNANSWERED, Obstacle.BLOCKED, Obstacle.NO_REPORT


class Condition(NamedTuple):
    """Ongoing problem, reported while it lasts."""

    sentence: str
    level: bytes


class Period(NamedTuple):
    """What was recorded until the last report, and what is since."""

    began_s: float
    counts: dict[str, int]
    """Counters at its begin."""
    durations_s: dict[str, tuple[float, int]]
    """Sum and number in it, by name."""


#: State of a link whose peers connect to it, before the first one and after the last one. The page shows it in grey.
UNUSED = "waiting for a peer"


class LinkReport:
    """Report of one link since the node was configured, over all activations."""

    def __init__(
        self, logger: Any, open_state: str, now_s: Callable[[], float] = elapsed_s, *, is_server: bool = False
    ) -> None:
        """Create an empty report.

        Args:
            logger: the node's logger.
            open_state: the state of a working link, the only one that is not a warning.
            now_s: the session's clock.
            is_server: whether it waits for clients: to have none is no problem.
        """
        self._logger, self._usual_states = logger, (open_state, UNUSED if is_server else open_state)
        self._now_s = now_s
        self._limiters = {"info": LogLimiters(), "warning": LogLimiters()}  # so that reconnects suppress no warnings
        self._ongoing: defaultdict[str, OngoingLogLimiter] = defaultdict(OngoingLogLimiter)  # by condition
        self.start_over(math.inf)

    def start_over(self, silence_limit_s: float) -> None:
        """Reset all but the throttling of the log. A connected peer's silence beyond `silence_limit_s` is a warning."""
        self._started_s = self._now_s()
        #: Counters: frames, dropped images, rejected input, commands, ...
        self.counts: collections.Counter[str] = collections.Counter()
        self._period = Period(self._started_s, {}, {})
        #: Facts about the peer, by name.
        self.facts: dict[str, str] = {}
        #: Current problems, by name.
        self.conditions: dict[str, Condition] = {}
        #: Silence of the peer.
        self.silence = PeerSilence(silence_limit_s)
        self.state, self.peer = "closed", ""
        self._reasons: dict[str, str] = {}  # newest logged sentence, by counter, the newest one last
        self._may_need_advice = True
        self.start_link()

    # Counters and durations, for any thread.

    def record_duration(self, name: str, seconds: float) -> None:
        """Record a measured duration, s."""
        durations_s = self._period.durations_s
        total, number = durations_s.get(name, (0.0, 0))
        durations_s[name] = (total + seconds, number + 1)

    # The log, for any thread.

    def inform(self, sentence: str) -> None:
        """Log an expected event, throttled."""
        if line := self._limiters["info"].admit(sentence):
            self._logger.info(line)

    def warn(self, sentence: str, count: str = "") -> None:
        """Log a warning about a peer or a command, throttled by its counter, or else by its text."""
        self._failed(count, sentence)
        if line := self._limiters["warning"].admit(sentence, count):
            self._logger.warning(line)

    def count_and_warn(self, count: str, sentence: str) -> None:
        """Count a problem and log a throttled warning."""
        self.counts[count] += 1
        self.warn(sentence, count)

    def warn_ongoing(self, condition: str, sentence: str, *, is_usual_at_start: bool = False) -> None:
        """Log an ongoing condition at its beginning, then at growing intervals.

        With `is_usual_at_start` it is logged as information within START_S of the start.
        """
        self._failed(condition, sentence)
        if line := self._ongoing[condition].admit(sentence):
            if is_usual_at_start and self._now_s() - self._started_s < START_S:
                self._logger.info(line)
            else:
                self._logger.warning(line)

    def count_and_warn_ongoing(self, count: str, sentence: str, *, is_usual_at_start: bool = False) -> None:
        """Count an ongoing problem, and log it with `warn_ongoing`."""
        self.counts[count] += 1
        self.warn_ongoing(count, sentence, is_usual_at_start=is_usual_at_start)

    def end_ongoing(self, condition: str) -> None:
        """End a condition, so that its next beginning is logged at once."""
        self._ongoing[condition].end()

    def _failed(self, name: str, sentence: str) -> None:
        self._reasons.pop(name, None)
        self._reasons[name] = sentence

    def advise(self, advice: str) -> None:
        """Log advice, once, if there was no connection within ADVICE_AFTER_S of the start."""
        if self._may_need_advice and self._now_s() - self._started_s >= ADVICE_AFTER_S:
            self._may_need_advice = False
            self._logger.info(advice)

    # Conditions, for any thread.

    def begin_condition(self, name: str, sentence: str, level: bytes = DiagnosticStatus.WARN) -> None:
        """Show a problem in diagnostics until `end_condition`."""
        self.conditions[name] = Condition(sentence, level)

    def end_condition(self, name: str) -> None:
        """Remove a problem from diagnostics."""
        self.conditions.pop(name, None)

    def update_condition(
        self, name: str, problem: str | None, advice: str = "", level: bytes = DiagnosticStatus.WARN
    ) -> None:
        """Show and log a problem, or end it if it is None or empty. Both texts have no full stop, or are empty."""
        if problem:
            sentence = f"{problem}: {advice}" if advice else problem
            self.begin_condition(name, sentence, level)
            self.warn_ongoing(name, f"{sentence}.")
        else:
            self.end_condition(name)
            self.end_ongoing(name)

    def update_obstacle(
        self,
        obstacle: Obstacle,
        facts: Mapping[str, object] | None,
        *,
        is_logged: bool = True,
    ) -> None:
        """Show an obstacle with its facts, and log it unless others do, or end it if they are None."""
        if facts is None:
            self.update_condition(obstacle.key, None)
        elif is_logged:
            self.update_condition(obstacle.key, obstacle.reason(**facts), obstacle.remedy(**facts))
        else:
            self.begin_condition(obstacle.key, obstacle.sentence(**facts).rstrip("."))

    # The peer. `start_link` and `follow` are for the thread that starts the link and for the link's.

    def start_link(self) -> None:
        """Reset the state of the last link's connections."""
        self.silence.start_link()
        self._last_peer = ""  # a server has none once its client was dropped

    def follow(self, session: Session) -> None:
        """Update the state, and the silence of the peer, from the session."""
        connected = (session.since_s,) if session.is_open else None
        self._may_need_advice &= connected is None
        self.silence.follow(connected, session.received_s, self.silence_s)
        self.state, self.peer = session.state, session.peer
        self._last_peer = self.peer or self._last_peer

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self.silence.is_open

    @property
    def silence_s(self) -> float:
        """Silence of the connected peer, s; 0 without a connection."""
        return self.silence.lasts_s(self._now_s(), PROCESS.running_s())

    @property
    def is_silent(self) -> bool:
        """Whether the peer is connected and has been silent for longer than the limit."""
        return self.silence_s > self.silence.limit_s

    @property
    def explanation(self) -> str:
        """The condition that says why the peer is silent, or ""."""
        return next((found.sentence for each in _EXPLAINING if (found := self.conditions.get(each.key))), "")

    def silence_sentence(self, silence_s: float) -> str:
        """Return why the peer is silent, or else for how long, and what to do about it."""
        if explanation := self.explanation:
            return f"{explanation}."
        obstacle = Obstacle.SILENT_IN_FLIGHT if self.silence.flies() else Obstacle.SILENT
        return obstacle.sentence(peer=self._last_peer, silence=f"{silence_s:.0f} s")

    def notice_silence(self) -> None:
        """Count and log the beginning and the end of a silence. Call this periodically in one thread."""
        silence_s, begins, ends = self.silence.detect(self.silence_s)
        self.counts[SILENCES] += begins
        if silence_s and not self.explanation:
            self.warn_ongoing(SILENCES, self.silence_sentence(silence_s))
        elif ends:
            if not self.explanation:
                self.inform(f"{self.peer} is no longer silent.")
            self.end_ongoing(SILENCES)

    # The status on /diagnostics, for the thread of the reports.

    def status(self, name: str, hardware_id: str) -> DiagnosticStatus:
        """Return the status of the period that ends now, and start the next one.

        Args:
            name: the name of the status.
            hardware_id: the identity of the link, the same in every report.
        """
        ended = self.start_period()
        now, declared = self._period, Counter.declared.copy()
        length_s, counts = max(now.began_s - ended.began_s, 1e-3), now.counts
        growth = {count: counts.get(count, 0) - ended.counts.get(count, 0) for count in declared}
        grown = [count for count, each in declared.items() if growth[count] and isinstance(each, ProblemCounter)]
        silence_s = self.silence_s
        found = self.conditions.copy()
        if silence_s > self.silence.limit_s and not self.explanation:
            found[Obstacle.SILENT.key] = Condition(self.silence_sentence(silence_s).rstrip("."), DiagnosticStatus.WARN)
        conditions = dict(sorted(found.items(), key=lambda each: RANKS.get(each[0], len(RANKS))))
        is_warning = self.state not in self._usual_states or grown
        levels = [condition.level for condition in conditions.values()]
        status = DiagnosticStatus(name=name, hardware_id=hardware_id)
        status.level = max([DiagnosticStatus.WARN if is_warning else DiagnosticStatus.OK, *levels])
        sentences = [condition.sentence for condition in conditions.values()]
        for count in grown:
            reason = self._reasons.get(count, "").rstrip(".")
            is_new = reason and not any(each in reason for each in sentences)
            sentences.append(f"{count.replace('_', ' ')} growing{f': {reason}' if is_new else ''}")
        status.message = "; ".join([self.state, *sentences])
        values = {"state": self.state, "peer": self.peer, "last_error": ["", *self._reasons.values()][-1]}
        values[PEER_SILENT] = f"{silence_s:.1f}" if self.is_open else ""
        values |= {name: condition.sentence for name, condition in conditions.items()}
        values |= self.facts.copy()
        values |= {key: str(counts.get(key, 0)) for key in growth}
        values |= {key: str(value) for key, value in sorted(counts.items()) if key not in values}
        values |= {
            f"{key}_per_second": f"{growth[key] / length_s:.1f}"
            for key, each in declared.items()
            if isinstance(each, RateCounter)
        }
        # The link's thread may still be adding to the last period's durations.
        for key, (total, number) in ended.durations_s.copy().items():
            values[f"{key}_ms"] = f"{1000 * total / number:.2f}"
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        return status

    def start_period(self) -> Period:
        """Start a new period. Return the last one."""
        ended, self._period = self._period, Period(self._now_s(), dict(self.counts), {})
        return ended
