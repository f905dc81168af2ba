# SPDX-License-Identifier: Apache-2.0
"""State machines of the testbed protocol, for the testbed's side and the autopilot's."""
