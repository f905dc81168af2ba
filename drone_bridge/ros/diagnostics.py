# SPDX-License-Identifier: Apache-2.0
"""Limits how much a peer, a controller or a persistent condition writes to the log."""

import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.stall_watch import PROCESS

BURST = 5  # lines that may come at once, as a single fault often shows in more than one way
LINES_PER_S = 1.0  # in the long run

FIRST_INTERVAL_S = 10.0
LONGEST_INTERVAL_S = 640.0
#: Programs that belong together are started in any order: for this long, one that is not there yet is no warning. When
#: the condition that lasts is logged the third time, it is one.
START_S = 3 * FIRST_INTERVAL_S
#: A condition that has not been met for this long has ended.
CONDITION_ENDS_AFTER_S = 30.0


class LogLimiter:
    """Decides which lines are logged, and counts suppressed ones. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allowance = float(BURST)
        self._updated_s = time.monotonic()
        self._suppressed = 0

    def admit(self, line: str) -> str | None:
        """Return the line to log, or None."""
        with self._lock:
            now_s = time.monotonic()
            self._allowance = min(BURST, self._allowance + (now_s - self._updated_s) * LINES_PER_S)
            self._updated_s = now_s
            if self._allowance < 1:
                self._suppressed += 1
                return None
            self._allowance -= 1
            suppressed, self._suppressed = self._suppressed, 0
        return _with_suppressed(line, suppressed)


@dataclass(slots=True)
class _Condition:
    """An ongoing condition."""

    due_s: float  # when it is logged next
    interval_s: float
    met_s: float  # when it was met last
    suppressed: int = 0


class ConditionLogLimiter:
    """Logs an ongoing condition when it begins, and then at growing intervals. Thread-safe.

    One that keeps beginning and ending is limited as other lines are, separately for each condition.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conditions: dict[str, _Condition] = {}
        self._beginnings: defaultdict[str, LogLimiter] = defaultdict(LogLimiter)

    def admit(self, condition: str, line: str) -> str | None:
        """Return the line to log about a condition, or None.

        Args:
            condition: its name, one of a few: each is remembered.
            line: what to say about it now.
        """
        with self._lock:
            now_s = time.monotonic()
            known = self._conditions.get(condition)
            if known is None or now_s - known.met_s > CONDITION_ENDS_AFTER_S:
                self._conditions[condition] = _Condition(now_s + FIRST_INTERVAL_S, FIRST_INTERVAL_S, now_s)
                return self._beginnings[condition].admit(line)
            known.met_s = now_s
            if now_s < known.due_s:
                known.suppressed += 1
                return None
            known.interval_s = min(2 * known.interval_s, LONGEST_INTERVAL_S)
            known.due_s = now_s + known.interval_s
            suppressed, known.suppressed = known.suppressed, 0
        return _with_suppressed(line, suppressed)

    def end(self, condition: str) -> None:
        """Note that a condition has ended, so that its next beginning is logged at once."""
        with self._lock:
            self._conditions.pop(condition, None)


def _with_suppressed(line: str, number: int) -> str:
    if not number:
        return line
    return f"{line} ({number} line{'' if number == 1 else 's'} suppressed)"


# How long a peer has been silent, over all of its connections.


class Conversation(Protocol):
    """What a session says of its peer's connection."""

    is_open: bool
    since_s: float | None
    heard_s: float | None
    hangs: int


class Liveness:
    """For how long a session's peer has been silent, over all its connections since it was last heard, for reports.

    While this process stood still, nobody was silent: it did not listen.

    The system of a hung peer often still accepts connections: those that open and close without a message from the peer
    do not restart the count. `look` and `closed` are for the link's thread, the rest for any.
    """

    def __init__(self, session: Conversation | None = None, now_s: Callable[[], float] = elapsed_s) -> None:
        """`now_s` is the session's clock. Without a session there is no connection."""
        self._session, self._now_s = session, now_s
        self._hangs = 0
        self._connected: tuple[float | None] | None = None  # since when; None without a connection
        self._heard_s: float | None = None
        self._since_s: float | None = None  # of the silence on the open connection; None: there is none
        self._before_s = 0.0  # silence on the connections before
        #: Whether the peer was heard since it hung last. For the link's thread to set.
        self.may_hang_anew = True

    def look(self, note_end: Callable[..., None]) -> None:
        """Follow the session; `note_end(is_timeout=…)` is called when a connection has ended."""
        session = self._session
        assert session
        connected = (session.since_s,) if session.is_open else None
        if self._connected and connected != self._connected:
            note_end(is_timeout=session.hangs > self._hangs)
        self._hangs = session.hangs
        self._connected = connected
        if connected is None:
            return
        if session.heard_s is not None and session.heard_s != self._heard_s:
            self._heard_s, self._before_s, self.may_hang_anew = session.heard_s, 0.0, True
        self._since_s = session.since_s if session.heard_s is None else session.heard_s

    def closed(self) -> None:
        self._before_s, self._since_s = self.silence_s, None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as the loop saw it when it last set the state for people."""
        return self._connected is not None

    @property
    def open_for_s(self) -> float:
        """For how long there has been a connection; 0 without one."""
        since_s = self._session.since_s if self._session else None
        return 0.0 if since_s is None or not self.is_open else self._now_s() - since_s

    @property
    def silence_s(self) -> float:
        """How long the peer has been silent while connected; 0 without a connection."""
        since_s = self._since_s
        silent_s = 0.0 if since_s is None else max(0.0, self._now_s() - since_s)
        return self._before_s + min(silent_s, PROCESS.running_s()) if since_s is not None else 0.0  # the rest: our own


# The statistics of a link, for /diagnostics.


#: The value of a status that says for how long the connected peer has been silent.
PEER_SILENT = "peer_silent_s"


class Condition(NamedTuple):
    """A problem that is reported while it lasts, unlike a count, which is a warning while it grows."""

    sentence: str
    level: bytes


class Period(NamedTuple):
    """What a link did from one report to the next."""

    length_s: float
    counts_before: dict[str, int]
    counts: dict[str, int]
    durations_s: dict[str, tuple[float, int]]

    def growth(self, count: str) -> int:
        """Return by how much a count has grown."""
        return self.counts.get(count, 0) - self.counts_before.get(count, 0)


@dataclass(slots=True)
class LinkStatistics:
    """The statistics of one link since the node was configured. Written by its thread, read once a second.

    `counts` holds what grows: frames, dropped images, rejected input, commands. `durations_s` holds, by name, the sum
    and number of the durations measured since the last report. `facts` holds what is known of the peer. `conditions`
    holds, by name, current problems.
    """

    open_state: str = "connected"  # the only state that is not a warning
    silence_limit_s: float = float("inf")  # a longer silence of a connected peer is a warning
    state: str = "closed"
    peer: str = ""
    last_error: str = ""
    liveness: Liveness = field(default_factory=Liveness)
    hangs: int = 0  # silences in which the peer was given up, since it was last heard for HEARD_WELL_S
    counts: Counter[str] = field(default_factory=Counter)
    durations_s: dict[str, tuple[float, int]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    _period_began_s: float = field(default_factory=time.monotonic)
    _counts_before: dict[str, int] = field(default_factory=dict)

    def took(self, name: str, seconds: float) -> None:
        """Add a measured duration."""
        total, number = self.durations_s.get(name, (0.0, 0))
        self.durations_s[name] = (total + seconds, number + 1)

    @property
    def is_silent(self) -> bool:
        """Whether the peer is connected and has been silent for too long."""
        return self.liveness.silence_s > self.silence_limit_s

    def begin_condition(self, name: str, sentence: str, level: bytes = DiagnosticStatus.WARN) -> None:
        """Report a problem until `end_condition`. Thread-safe."""
        self.conditions[name] = Condition(sentence, level)

    def end_condition(self, name: str) -> None:
        """Thread-safe."""
        self.conditions.pop(name, None)

    def start_period(self) -> Period:
        """Start a new period, and return the one that has ended."""
        now_s = time.monotonic()
        length_s = max(now_s - self._period_began_s, 1e-3)
        ended = Period(length_s, self._counts_before, dict(self.counts), self.durations_s)
        self._period_began_s, self._counts_before, self.durations_s = now_s, ended.counts, {}
        return ended

    def report(
        self, name: str, hardware_id: str, rates: tuple[str, ...], problems: tuple[str, ...]
    ) -> DiagnosticStatus:
        """Return the status, and start a new period.

        Args:
            name: of the status.
            hardware_id: what the status is about, the same in every report.
            rates: the counts that are shown per second as well.
            problems: the counts that are a warning when they have grown during the period.
        """
        period = self.start_period()
        grown = [problem for problem in problems if period.growth(problem)]
        conditions = self.conditions.copy()
        silence_s = self.liveness.silence_s
        is_silent = silence_s > self.silence_limit_s
        is_warning = self.state != self.open_state or grown or is_silent
        levels = [condition.level for condition in conditions.values()]
        status = DiagnosticStatus(name=name, hardware_id=hardware_id)
        status.level = max([DiagnosticStatus.WARN if is_warning else DiagnosticStatus.OK, *levels])
        state = f"{self.state}, silent for {silence_s:.0f} s" if is_silent else self.state
        growing = [f"{', '.join(grown).replace('_', ' ')} growing"] if grown else []
        status.message = "; ".join([state, *(condition.sentence for condition in conditions.values()), *growing])
        values = self._values(period, conditions, silence_s, rates, problems)
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        return status

    def _values(
        self,
        period: Period,
        conditions: dict[str, Condition],
        silence_s: float,
        rates: tuple[str, ...],
        problems: tuple[str, ...],
    ) -> dict[str, str]:
        """Return what the status shows, in this order."""
        counts = period.counts
        values = {"state": self.state, "peer": self.peer, "last_error": self.last_error}
        values[PEER_SILENT] = f"{silence_s:.1f}" if self.liveness.is_open else ""
        values |= {name: condition.sentence for name, condition in conditions.items()}
        values |= self.facts.copy()
        values |= {key: str(counts.get(key, 0)) for key in (*rates, *problems)}
        values |= {key: str(value) for key, value in sorted(counts.items()) if key not in values}
        for key in rates:
            values[f"{key}_per_second"] = f"{period.growth(key) / period.length_s:.1f}"
        # The IO thread may be just about to add to what is now the last period's.
        for key, (total, number) in period.durations_s.copy().items():
            values[f"{key}_ms"] = f"{1000 * total / number:.2f}"
        return values


# Calls a function at steady intervals, in a separate thread.


class Ticker:
    """Calls a function periodically in real time, until it is stopped."""

    def __init__(self, name: str, period_s: float, call: Callable[[], None], on_failure: Callable[[str], None]) -> None:
        """`call` must not block for long; its exceptions go to `on_failure` as tracebacks."""
        self._period_s = period_s
        self._call = call
        self._on_failure = on_failure
        # Held until it is to stop. To wait for an Event makes another lock each time.
        self._running = threading.Lock()
        self._running.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, after a call in progress has returned."""
        self._running.release()
        self._thread.join()

    def _run(self) -> None:
        while not self._running.acquire(timeout=self._period_s):
            try:
                self._call()
            except Exception:
                self._on_failure(traceback.format_exc())


# Reports to users: counts and conditions on /diagnostics, rate-limited log lines.


SILENCES = "silences"
#: The condition of a peer that hangs again and again, from the third time on; it ends when it has been connected, and
#: heard, for long enough.
HANGING = "hanging_peer"
HANGS_OF_AN_ERROR = 3
HEARD_WELL_S = 60.0
#: The condition that /clock has more than one publisher.
CLOCKS = "clock"


class Reports:
    """Counts, logs and reports. Thread-safe, except for `make_report`, `notice_silence` and `start_over`."""

    def __init__(self, logger: Any, open_state: str) -> None:
        """`open_state` names the state of a working link."""
        self._logger = logger
        self._open_state = open_state
        self._warnings: defaultdict[str, LogLimiter] = defaultdict(LogLimiter)  # by count: one must not hide another
        self._information = LogLimiter()  # a peer that comes and goes must not keep a warning from the log
        self._condition_limiter = ConditionLogLimiter()
        self._was_silent = False
        self._silent_peer = ""
        self._started_s = elapsed_s()
        self.statistics = LinkStatistics(open_state)

    def start_over(self, silence_limit_s: float) -> None:
        """Reset the counts; a peer that is silent for longer than this limit is reported."""
        self._started_s = elapsed_s()
        self.statistics = LinkStatistics(self._open_state, silence_limit_s)
        self._was_silent = False

    def inform(self, sentence: str) -> None:
        """Log an expected event, rate-limited."""
        if line := self._information.admit(sentence):
            self._logger.info(line)

    def warn(self, sentence: str, count: str = "") -> None:
        """Log a warning about a peer or a command, rate-limited by what is counted of it."""
        self.statistics.last_error = sentence
        if line := self._warnings[count].admit(sentence):
            self._logger.warning(line)

    def count_and_warn(self, count: str, sentence: str) -> None:
        """Count a problem and log a warning about it, rate-limited."""
        self.statistics.counts[count] += 1
        self.warn(sentence, count)

    def warn_ongoing(self, condition: str, sentence: str, *, is_usual_at_start: bool = False) -> None:
        """Log an ongoing condition when it begins, then at growing intervals.

        One that `is_usual_at_start` is no warning within START_S of the start.
        """
        self.statistics.last_error = sentence
        if line := self._condition_limiter.admit(condition, sentence):
            if is_usual_at_start and elapsed_s() - self._started_s < START_S:
                self._logger.info(line)
            else:
                self._logger.warning(line)

    def count_and_warn_ongoing(self, count: str, sentence: str, *, is_usual_at_start: bool = False) -> None:
        """Count an ongoing problem, and log it as `warn_ongoing` does."""
        self.statistics.counts[count] += 1
        self.warn_ongoing(count, sentence, is_usual_at_start=is_usual_at_start)

    def end_ongoing(self, condition: str) -> None:
        """Note that a condition has ended, so that its next beginning is logged at once."""
        self._condition_limiter.end(condition)

    def update_condition(self, condition: str, problem: str | None, advice: str) -> None:
        """Report a problem while there is one; log it when it begins and then at growing intervals.

        Neither it nor the advice, which only the log gives, has a full stop.
        """
        if problem:
            self.statistics.begin_condition(condition, problem)
            self.warn_ongoing(condition, f"{problem}: {advice}.")
        else:
            self.statistics.end_condition(condition)
            self.end_ongoing(condition)

    def make_report(self, name: str, hardware_id: str, rates: tuple[str, ...], problems: tuple[str, ...]) -> Any:
        """Return the message for /diagnostics, with one status."""
        return DiagnosticArray(status=[self.statistics.report(name, hardware_id, rates, problems)])

    def note_end(self, *, is_timeout: bool) -> None:
        """Note that a link has ended; `is_timeout`: because the peer was silent. For the link's thread."""
        statistics, liveness = self.statistics, self.statistics.liveness
        if (is_timeout or statistics.is_silent) and liveness.may_hang_anew:
            statistics.hangs += 1
            liveness.may_hang_anew = False  # on the next links it hangs still, unless it is heard
        liveness.closed()

    def _notice_hangs(self, is_silent: bool) -> None:
        """Report a peer that hangs again and again, although it is connected in between."""
        statistics = self.statistics
        hangs = statistics.hangs + (is_silent and statistics.liveness.may_hang_anew)
        if hangs >= HANGS_OF_AN_ERROR:
            sentence = f"{statistics.peer} has hung {hangs} times"
            if HANGING not in statistics.conditions:
                self._logger.error(f"{sentence}, and was given up each time before: restart it.")
            statistics.begin_condition(HANGING, sentence, DiagnosticStatus.ERROR)
        if statistics.liveness.open_for_s > HEARD_WELL_S and not is_silent:
            statistics.hangs = 0
            statistics.end_condition(HANGING)

    def notice_silence(self) -> None:
        """Count and log the beginning of a silence, and log its end. To be called now and then."""
        statistics = self.statistics
        is_silent = statistics.is_silent
        self._notice_hangs(is_silent)
        if is_silent:
            sentence = f"{statistics.peer} is connected but has been silent for {statistics.liveness.silence_s:.0f} s."
            if not self._was_silent:
                statistics.counts[SILENCES] += 1
            self.warn_ongoing(SILENCES, sentence)
            self._silent_peer = statistics.peer
        elif self._was_silent and statistics.liveness.is_open:
            again = " again" if statistics.peer == self._silent_peer else ""  # or it is another one
            self.inform(f"{statistics.peer} is heard{again}.")
            self.end_ongoing(SILENCES)
        if is_silent or statistics.liveness.is_open:  # a link that is opened again tells nothing by being opened
            self._was_silent = is_silent
