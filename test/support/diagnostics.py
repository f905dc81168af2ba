# SPDX-License-Identifier: Apache-2.0
"""What nodes report on /diagnostics."""

from diagnostic_msgs.msg import DiagnosticArray


def values_of(report):
    """Return the values of a report of one node by name."""
    return {pair.key: pair.value for pair in report.status[0].values}


def status(ros, wanted=lambda values: True):
    """Return the values of the next report that is wanted."""
    inbox = ros.subscribe(DiagnosticArray, "/diagnostics")
    return values_of(inbox.wait(lambda report: wanted(values_of(report))))


def wait_for_count(ros, name, more, before):
    """Wait until a count has grown by `more` since the values `before`; return the values then."""
    return status(ros, lambda values: int(values.get(name, 0)) >= int(before.get(name, 0)) + more)
