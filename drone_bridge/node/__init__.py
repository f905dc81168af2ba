# SPDX-License-Identifier: Apache-2.0
"""What all nodes have in common: running and stopping, parameters, service responses, log limits."""
