# SPDX-License-Identifier: Apache-2.0
"""Sessions of a simulator and of its clients, which decide when to send what. Pure, with the time as an argument."""
