# SPDX-License-Identifier: Apache-2.0
"""Reports: what a node counts, logs and publishes on /diagnostics about its link.

Warnings are rate-limited by the name of their count, so that one problem does not hide another. What lasts is logged
when it begins and then at growing intervals, whether or not anybody subscribes. A peer is heard, silent (beyond the
limit), or hanging (silent for the third time, and never heard for HEARD_WELL_S in between), which is an error.
"""

import math
from collections import defaultdict
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.link_statistics import LinkStatistics
from drone_bridge.ros.log_limiter import FIRST_INTERVAL_S, LogLimiters, OngoingLogLimiter

#: Programs that belong together are started in any order: for this long, one that is not there yet is no warning. When
#: the condition that lasts is logged the third time, it is one.
START_S = 3 * FIRST_INTERVAL_S
SILENCES = "silences"
#: The condition of a peer that was silent again and again, from the third time on; it ends when it has been heard for
#: long enough.
HANGING = "hanging_peer"
SILENCES_OF_AN_ERROR = 3
HEARD_WELL_S = 60.0
#: The condition that /clock has more than one publisher.
CLOCKS = "clock"


class Reports:
    """Counts, logs and reports. Thread-safe, but for `notice_silence` and `start_over`."""

    def __init__(self, logger: Any, open_state: str) -> None:
        """`open_state` names the state of a working link."""
        self._logger = logger
        self._open_state = open_state
        self._warnings = LogLimiters()  # by count, as one must not hide another
        self._information = LogLimiters()  # a peer that comes and goes must not keep a warning from the log
        self._ongoing: defaultdict[str, OngoingLogLimiter] = defaultdict(OngoingLogLimiter)  # by condition
        self.start_over(math.inf)

    def start_over(self, silence_limit_s: float) -> None:
        """Reset the counts; a peer that is silent for longer than this limit is reported."""
        self._started_s = self._heard_since_s = elapsed_s()
        self.statistics = LinkStatistics(self._open_state, silence_limit_s)
        self._was_silent, self._silences = False, 0  # since it was last heard for long enough

    def inform(self, sentence: str) -> None:
        """Log an expected event, rate-limited."""
        if line := self._information.admit(sentence):
            self._logger.info(line)

    def warn(self, sentence: str, count: str = "") -> None:
        """Log a warning about a peer or a command, rate-limited by its count, or by its text without one."""
        self.statistics.last_error = sentence
        if line := self._warnings.admit(sentence, count):
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
        if line := self._ongoing[condition].admit(sentence):
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
        self._ongoing[condition].end()

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

    def notice_silence(self) -> None:
        """Count and log the beginning of a silence, and log its end. To be called now and then."""
        statistics, now_s = self.statistics, elapsed_s()
        liveness, is_open = statistics.liveness, statistics.liveness.is_open
        ended_in_s, liveness.ended_in_s = liveness.ended_in_s, 0.0
        silence_s = max(liveness.silence_s, ended_in_s)
        is_silent = silence_s > statistics.silence_limit_s
        if is_silent and not self._was_silent:
            statistics.counts[SILENCES] += 1
            self._silences += 1
            if self._silences >= SILENCES_OF_AN_ERROR:
                sentence = f"{statistics.peer} has fallen silent {self._silences} times"
                if HANGING not in statistics.conditions:
                    self._logger.error(f"{sentence}: it hangs, or the network drops out.")
                statistics.begin_condition(HANGING, sentence, DiagnosticStatus.ERROR)
        if is_silent:
            sentence = f"{statistics.peer} is connected but has been silent for {silence_s:.0f} s."
            self.warn_ongoing(SILENCES, sentence)
        elif self._was_silent and is_open:
            self.inform(f"{statistics.peer} is heard.")
            self.end_ongoing(SILENCES)
        if is_silent or not is_open:
            self._heard_since_s = now_s
        elif now_s - self._heard_since_s > HEARD_WELL_S:
            self._silences = 0
            statistics.end_condition(HANGING)
        if is_silent or is_open:  # that a link was opened again means nothing yet
            self._was_silent = is_silent
