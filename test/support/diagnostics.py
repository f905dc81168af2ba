# SPDX-License-Identifier: Apache-2.0
"""What nodes report on /diagnostics."""

import re

from diagnostic_msgs.msg import DiagnosticArray


def values_of(report):
    """Return the values of a report of one node by name; names are in snake_case, whatever has been counted by then."""
    values = {pair.key: pair.value for pair in report.status[0].values}
    assert [key for key in values if not re.fullmatch("[a-z][a-z0-9_]*", key)] == []
    return values


def status(ros, wanted=lambda values: True):
    """Return the values of the next report that is wanted."""
    inbox = ros.subscribe(DiagnosticArray, "/diagnostics")
    return values_of(inbox.wait(lambda report: wanted(values_of(report))))


def wait_for_count(ros, name, more, before):
    """Wait until a count has grown by `more` since the values `before`; return the values then."""
    return status(ros, lambda values: int(values.get(name, 0)) >= int(before.get(name, 0)) + more)
