"""Files of other tools: read into what envkit can lock, and locks written as what other tools can read."""

from envkit.lock.formats.allowed import check_hashes
from envkit.lock.formats.foreign import Foreign, Kind, Note, Pinned, PipIndexes
from envkit.lock.formats.reading import read_spec
from envkit.lock.formats.v1 import Complete, to_lock, v1_text
from envkit.lock.formats.writing import WRITERS, HashKind, Writer, write

__all__ = [
    "WRITERS",
    "Complete",
    "Foreign",
    "HashKind",
    "Kind",
    "Note",
    "Pinned",
    "PipIndexes",
    "Writer",
    "check_hashes",
    "read_spec",
    "to_lock",
    "v1_text",
    "write",
]
