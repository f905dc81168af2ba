# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge grade`: fly a submission through a task's runs, and mark it. See docs/grade.md."""
