# SPDX-License-Identifier: Apache-2.0
"""LinkReport: counts, logs and /diagnostics of a node's link.

- **Counts** grow. Some of them are shown as rates, and the growth of others is a warning.
- **Conditions** are problems that last, and are shown while they do. They are logged when they begin and then at
  growing intervals, whether or not anybody subscribes. Other log lines are rate-limited by the name of their count, so
  that one problem does not hide another.
- **Silence** of the peer is counted over all its connections since its last message: the system of a hung peer often
  still accepts connections. A peer is connected, silent (beyond a limit), or hanging (silent for the third time without
  HEARD_WELL_S of messages in between), which is an error. While this process was stalled, nobody was silent.

Three threads use it without a lock. The link's thread and the executor count, and the link's thread follows the session
after each turn of its loop. The thread of the reports looks for silences, and closes a period once a second, by
replacing the durations and copying what others may be changing. It may see the state of one turn beside that of the
next: good enough for a report, not for a decision.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.log_limiter import FIRST_INTERVAL_S, LogLimiters, OngoingLogLimiter
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.session.session import Session

#: What the name of a node's status on /diagnostics ends with, after the node's full name.
LINK_STATUS = ": link"
#: The value of a status that says for how long the connected peer has been silent.
PEER_SILENT = "peer_silent_s"
#: Programs that belong together are started in any order: for this long, a missing one is no warning. The third line
#: about an ongoing condition is one.
START_S = 3 * FIRST_INTERVAL_S
#: The count of silences.
SILENCES = "silences"
#: The condition of a peer that was silent again and again, until it has been heard for long enough.
HANGING = "hanging_peer"
SILENCES_OF_AN_ERROR = 3
#: After which a user whose vehicle has not been reached yet is told what to check, once.
ADVICE_AFTER_S = 5.0
HEARD_WELL_S = 60.0


class Condition(NamedTuple):
    """A problem that is reported while it lasts, unlike a count, which is a warning while it grows."""

    sentence: str
    level: bytes


class LinkReport:
    """The report of one link since the node was configured, over all activations."""

    def __init__(
        self,
        logger: Any,
        open_state: str,
        rates: Sequence[str] = (),
        problems: Sequence[str] = (),
        now_s: Callable[[], float] = elapsed_s,
    ) -> None:
        """Make an empty report.

        Args:
            logger: the node's.
            open_state: the state of a working link, the only one that is not a warning.
            rates: the counts that are shown per second as well.
            problems: the counts that are a warning when they have grown during a period.
            now_s: the session's clock.
        """
        self._logger, self._open_state, self._rates, self._problems = logger, open_state, rates, problems
        self._now_s = now_s
        self._warnings = LogLimiters()  # by count
        self._information = LogLimiters()  # a peer that comes and goes must not keep a warning from the log
        self._ongoing: defaultdict[str, OngoingLogLimiter] = defaultdict(OngoingLogLimiter)  # by condition
        self.start_over(math.inf)

    def start_over(self, silence_limit_s: float) -> None:
        """Reset everything but the log's limits; `silence_limit_s` is as in the attribute."""
        self._started_s = self._period_began_s = self._now_s()
        #: What grows: frames, dropped images, rejected input, commands.
        self.counts: Counter[str] = Counter()
        self._counts_before: dict[str, int] = {}
        #: Facts about the peer, by name.
        self.facts: dict[str, str] = {}
        #: Current problems, by name.
        self.conditions: dict[str, Condition] = {}
        #: A longer silence of a connected peer is a warning.
        self.silence_limit_s = silence_limit_s
        self.state, self.peer = "closed", ""
        self._last_error = ""
        self._durations_s: dict[str, tuple[float, int]] = {}  # sum and number of a period
        self._was_silent, self._silences = False, 0  # since the peer was last heard for long enough
        self._heard_since_s = self._started_s
        self._may_need_advice = True
        self.start_link()

    # Counts and durations, for any thread.

    def took(self, name: str, seconds: float) -> None:
        """Add a measured duration."""
        total, number = self._durations_s.get(name, (0.0, 0))
        self._durations_s[name] = (total + seconds, number + 1)

    # The log, for any thread.

    def inform(self, sentence: str) -> None:
        """Log an expected event, rate-limited."""
        if line := self._information.admit(sentence):
            self._logger.info(line)

    def warn(self, sentence: str, count: str = "") -> None:
        """Log a warning about a peer or a command, rate-limited by its count, or by its text without one."""
        self._last_error = sentence
        if line := self._warnings.admit(sentence, count):
            self._logger.warning(line)

    def count_and_warn(self, count: str, sentence: str) -> None:
        """Count a problem and log a warning about it, rate-limited."""
        self.counts[count] += 1
        self.warn(sentence, count)

    def warn_ongoing(self, condition: str, sentence: str, *, is_usual_at_start: bool = False) -> None:
        """Log an ongoing condition when it begins, then at growing intervals.

        One that `is_usual_at_start` is no warning within START_S of the start.
        """
        self._last_error = sentence
        if line := self._ongoing[condition].admit(sentence):
            if is_usual_at_start and self._now_s() - self._started_s < START_S:
                self._logger.info(line)
            else:
                self._logger.warning(line)

    def count_and_warn_ongoing(self, count: str, sentence: str, *, is_usual_at_start: bool = False) -> None:
        """Count an ongoing problem, and log it as `warn_ongoing` does."""
        self.counts[count] += 1
        self.warn_ongoing(count, sentence, is_usual_at_start=is_usual_at_start)

    def end_ongoing(self, condition: str) -> None:
        """Note that a condition has ended, so that its next beginning is logged at once."""
        self._ongoing[condition].end()

    def advise(self, advice: str) -> None:
        """Log what to check, once, if there has been no connection within ADVICE_AFTER_S of the start."""
        if self._may_need_advice and self._now_s() - self._started_s >= ADVICE_AFTER_S:
            self._may_need_advice = False
            self._logger.info(advice)

    # Conditions, for any thread.

    def begin_condition(self, name: str, sentence: str, level: bytes = DiagnosticStatus.WARN) -> None:
        """Show a problem until `end_condition`."""
        self.conditions[name] = Condition(sentence, level)

    def end_condition(self, name: str) -> None:
        """Show a problem no longer."""
        self.conditions.pop(name, None)

    def update_condition(self, name: str, problem: str | None, advice: str) -> None:
        """Show and log a problem while there is one.

        Neither it nor the advice, which only the log gives, has a full stop.
        """
        if problem:
            self.begin_condition(name, problem)
            self.warn_ongoing(name, f"{problem}: {advice}.")
        else:
            self.end_condition(name)
            self.end_ongoing(name)

    # The peer. `start_link` and `follow` are for the thread that starts the link and for the link's.

    def start_link(self) -> None:
        """Forget the connections of the link before."""
        self._connected: tuple[float | None] | None = None  # since when; None without a connection
        self._heard_s: float | None = None
        self._silent_since_s: float | None = None  # on the open connection; None: there is none
        self._silent_before_s = 0.0  # on the connections before
        self._ended_in_s = 0.0  # the silence in which a connection has ended, until it is noticed

    def follow(self, session: Session) -> None:
        """Take over the session's state, and the silence of its peer."""
        connected = (session.since_s,) if session.is_open else None
        self._may_need_advice &= connected is None
        if self._connected and connected != self._connected:
            self._silent_before_s, self._silent_since_s = self.silence_s, None
            self._ended_in_s = max(self._ended_in_s, self._silent_before_s)
        self._connected = connected
        if connected is not None:
            if session.heard_s is not None and session.heard_s != self._heard_s:
                self._heard_s, self._silent_before_s = session.heard_s, 0.0
            self._silent_since_s = session.since_s if session.heard_s is None else session.heard_s
        self.state, self.peer = session.state, session.peer

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connected is not None

    @property
    def silence_s(self) -> float:
        """How long the peer has been silent while connected, s; 0 without a connection."""
        if (since_s := self._silent_since_s) is None:
            return 0.0
        silent_s = max(0.0, self._now_s() - since_s)
        return self._silent_before_s + min(silent_s, PROCESS.running_s())  # before that we were not listening

    @property
    def is_silent(self) -> bool:
        """Whether the peer is connected and has been silent for longer than the limit."""
        return self.silence_s > self.silence_limit_s

    def notice_silence(self) -> None:
        """Count and log the beginning of a silence, and log its end. To be called now and then by one thread."""
        is_open, now_s = self.is_open, self._now_s()
        ended_in_s, self._ended_in_s = self._ended_in_s, 0.0
        silence_s = max(self.silence_s, ended_in_s)
        is_silent = silence_s > self.silence_limit_s
        if is_silent and not self._was_silent:
            self.counts[SILENCES] += 1
            self._silences += 1
            if self._silences >= SILENCES_OF_AN_ERROR:
                sentence = f"{self.peer} has fallen silent {self._silences} times"
                if HANGING not in self.conditions:
                    self._logger.error(f"{sentence}: it hangs, or the network drops out.")
                self.begin_condition(HANGING, sentence, DiagnosticStatus.ERROR)
        if is_silent:
            self.warn_ongoing(SILENCES, f"{self.peer} is connected but has been silent for {silence_s:.0f} s.")
        elif self._was_silent and is_open:
            self.inform(f"{self.peer} is heard.")
            self.end_ongoing(SILENCES)
        if is_silent or not is_open:
            self._heard_since_s = now_s
        elif now_s - self._heard_since_s > HEARD_WELL_S:
            self._silences = 0
            self.end_condition(HANGING)
        if is_silent or is_open:  # that a link was opened again means nothing yet
            self._was_silent = is_silent

    # The status on /diagnostics, for the thread of the reports.

    def status(self, name: str, hardware_id: str) -> DiagnosticStatus:
        """Return the status of the period that ends now, and start the next one.

        Args:
            name: of the status.
            hardware_id: what the status is about, the same in every report.
        """
        length_s, before = max(self._now_s() - self._period_began_s, 1e-3), self._counts_before
        counts, durations_s = self.start_period()
        growth = {count: counts.get(count, 0) - before.get(count, 0) for count in (*self._rates, *self._problems)}
        grown = [problem for problem in self._problems if growth[problem]]
        conditions, silence_s = self.conditions.copy(), self.silence_s
        is_silent = silence_s > self.silence_limit_s
        is_warning = self.state != self._open_state or grown or is_silent
        levels = [condition.level for condition in conditions.values()]
        status = DiagnosticStatus(name=name, hardware_id=hardware_id)
        status.level = max([DiagnosticStatus.WARN if is_warning else DiagnosticStatus.OK, *levels])
        state = f"{self.state}, silent for {silence_s:.0f} s" if is_silent else self.state
        growing = [f"{', '.join(grown).replace('_', ' ')} growing"] if grown else []
        status.message = "; ".join([state, *(condition.sentence for condition in conditions.values()), *growing])
        values = {"state": self.state, "peer": self.peer, "last_error": self._last_error}
        values[PEER_SILENT] = f"{silence_s:.1f}" if self.is_open else ""
        values |= {name: condition.sentence for name, condition in conditions.items()}
        values |= self.facts.copy()
        values |= {key: str(counts.get(key, 0)) for key in growth}
        values |= {key: str(value) for key, value in sorted(counts.items()) if key not in values}
        values |= {f"{key}_per_second": f"{growth[key] / length_s:.1f}" for key in self._rates}
        # The link's thread may be just about to add to what is now the last period's.
        for key, (total, number) in durations_s.copy().items():
            values[f"{key}_ms"] = f"{1000 * total / number:.2f}"
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        return status

    def start_period(self) -> tuple[dict[str, int], dict[str, tuple[float, int]]]:
        """Start a period without a report of the one before; return its final counts, and its durations."""
        counts, durations_s = dict(self.counts), self._durations_s
        self._period_began_s, self._counts_before, self._durations_s = self._now_s(), counts, {}
        return counts, durations_s
