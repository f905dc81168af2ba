# SPDX-License-Identifier: Apache-2.0
"""What is sent when in the testbed's protocol, by the testbed's side and by the autopilot's."""
