# SPDX-License-Identifier: Apache-2.0
"""Reports to users: counts and conditions on /diagnostics, rate-limited log lines."""

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray

from drone_bridge.ros.liveness import Liveness
from drone_bridge.ros.log_limiter import ConditionLogLimiter, LogLimiter
from drone_bridge.ros.statistics import LinkStatistics

SILENCES = "silences"
#: The condition that /clock has more than one publisher.
CLOCKS = "clock"


class Reports:
    """Counts, logs and reports. Thread-safe, except for `make_report`, `notice_silence` and `start_over`."""

    def __init__(self, logger: Any, open_state: str) -> None:
        """`open_state` names the state of a working link."""
        self._logger = logger
        self._open_state = open_state
        self._warnings = LogLimiter()
        self._information = LogLimiter()  # a peer that comes and goes must not keep a warning from the log
        self._condition_limiter = ConditionLogLimiter()
        self._was_silent = False
        self.statistics = LinkStatistics(open_state)

    def start_over(self, silence_limit_s: float, may_be_silent: bool) -> None:
        """Reset the counts; a peer that is silent for longer than this limit is reported.

        With `may_be_silent`, one that has never sent anything is not.
        """
        self.statistics = LinkStatistics(self._open_state, silence_limit_s, liveness=Liveness(may_be_silent))
        self._was_silent = False

    def inform(self, sentence: str) -> None:
        """Log an expected event, rate-limited."""
        if line := self._information.admit(sentence):
            self._logger.info(line)

    def warn(self, sentence: str) -> None:
        """Log a warning about a peer or a command, rate-limited."""
        self.statistics.last_error = sentence
        if line := self._warnings.admit(sentence):
            self._logger.warning(line)

    def count_and_warn(self, count: str, sentence: str) -> None:
        """Count a problem and log a warning about it, rate-limited."""
        self.statistics.counts[count] += 1
        self.warn(sentence)

    def warn_ongoing(self, condition: str, sentence: str) -> None:
        """Log an ongoing condition when it begins, then at growing intervals."""
        self.statistics.last_error = sentence
        if line := self._condition_limiter.admit(condition, sentence):
            self._logger.warning(line)

    def count_and_warn_ongoing(self, count: str, sentence: str) -> None:
        """Count an ongoing problem, and log it as `warn_ongoing` does."""
        self.statistics.counts[count] += 1
        self.warn_ongoing(count, sentence)

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

    def notice_silence(self) -> None:
        """Count and log the beginning of a silence, and log its end. To be called now and then."""
        statistics = self.statistics
        is_silent = statistics.is_silent
        if is_silent:
            sentence = f"{statistics.peer} is connected but has been silent for {statistics.liveness.silence_s:.0f} s."
            if not self._was_silent:
                statistics.counts[SILENCES] += 1
            self.warn_ongoing(SILENCES, sentence)
        elif self._was_silent and statistics.liveness.is_open:
            self.inform(f"{statistics.peer} is heard again.")
            self.end_ongoing(SILENCES)
        if is_silent or statistics.liveness.is_open:  # a link that is opened again tells nothing by being opened
            self._was_silent = is_silent
