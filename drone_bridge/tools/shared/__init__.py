# SPDX-License-Identifier: Apache-2.0
"""What several commands and nodes use."""
