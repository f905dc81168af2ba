# SPDX-License-Identifier: Apache-2.0
"""ROS domains of measurements, which tests don't use: their subscribers would distort the figures."""

DOMAINS = range(82, 102)  # the ports of higher domains are in Linux's ephemeral range
