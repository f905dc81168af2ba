# SPDX-License-Identifier: Apache-2.0
"""The commands hold and resume."""
