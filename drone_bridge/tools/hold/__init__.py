# SPDX-License-Identifier: Apache-2.0
"""The commands hold and resume."""

#: Reason of the hold.
REASON = "a person ran drone-bridge hold"
