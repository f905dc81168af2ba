# SPDX-License-Identifier: Apache-2.0
"""What is said when between a simulator and its clients: pure, with the time handed in."""
