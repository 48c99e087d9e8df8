"""A Report as text and as JSON; rows as a table."""

from __future__ import annotations

from envkit.report.data import to_json
from envkit.report.table import table
from envkit.report.text import to_text

__all__ = ["table", "to_json", "to_text"]
