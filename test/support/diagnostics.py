# SPDX-License-Identifier: Apache-2.0
"""What nodes report on /diagnostics."""

import re


def values_of(report):
    """Return the values of a report of one node by name; names are in snake_case, whatever has been counted by then."""
    values = {pair.key: pair.value for pair in report.status[0].values}
    assert [key for key in values if not re.fullmatch("[a-z][a-z0-9_]*", key)] == []
    return values
