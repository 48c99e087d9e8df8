"""What channels are called and where they lie: names, canonical URLs, the table of mirrors.

Text alone: nothing here opens a connection. A mirror is a transport, so whatever names one (a spec, a lock,
a .condarc) is read as the channel it stands for.
"""

from envkit.channels.canonical import Canonical, canonicalise_url, is_licensed
from envkit.channels.condarc import condarc_bases
from envkit.channels.names import Location, canonical_url, channel_name, locate
from envkit.channels.pypi import index_at, index_url, is_pypi_file, published_file, pypi_files, pypi_simple
from envkit.channels.table import Carriage, Mirror, Table, Tree, table
from envkit.channels.urls import has_token, has_user, hostname, is_url, local_path, shown, shown_text

__all__ = [
    "Canonical",
    "Carriage",
    "Location",
    "Mirror",
    "Table",
    "Tree",
    "canonical_url",
    "canonicalise_url",
    "channel_name",
    "condarc_bases",
    "has_token",
    "has_user",
    "hostname",
    "index_at",
    "index_url",
    "is_licensed",
    "is_pypi_file",
    "is_url",
    "local_path",
    "locate",
    "published_file",
    "pypi_files",
    "pypi_simple",
    "shown",
    "shown_text",
    "table",
]
