# SPDX-License-Identifier: Apache-2.0
"""What is said when in the simulator's protocol, by the simulator and by a client."""
