# SPDX-License-Identifier: Apache-2.0
"""What is sent when in the landing challenge's protocol, by the controller and by the drone."""
