"""A lock looked over before anybody installs from it: ours or a stranger's, every finding at once.

`envkit.lock` itself does not import this: what only reads locks stays quick.
"""

from envkit.lock.audit.audit import audit, audit_file, fits, read_draft, unreadable
from envkit.lock.audit.channel import Records, read_records
from envkit.lock.audit.machine import KEYS, parse_host
from envkit.lock.audit.rule import Facts
from envkit.lock.audit.rules import RULES

__all__ = [
    "KEYS",
    "RULES",
    "Facts",
    "Records",
    "audit",
    "audit_file",
    "fits",
    "parse_host",
    "read_draft",
    "read_records",
    "unreadable",
]
