"""What channels are called and where they lie: names, canonical URLs, the table of mirrors.

Text alone: nothing here opens a connection. A mirror is a transport, so whatever names one (a spec, a lock,
a .condarc) is read as the channel it stands for.
"""

from envkit.channels.canonical import Canonical, canonicalise_url, is_licensed
from envkit.channels.condarc import Condarc, condarc_bases, read_condarc
from envkit.channels.mistakes import Mistake
from envkit.channels.names import Location, canonical_url, channel_name, locate
from envkit.channels.pypi import index_at, index_url, is_pypi_file, published_file, pypi_files, pypi_simple
from envkit.channels.settings import MAINLAND, condarc_text, pip_conf_text
from envkit.channels.table import Carriage, Mirror, Table, Tree, table
from envkit.channels.urls import has_token, has_user, hostname, is_url, local_path, shown, shown_text

__all__ = [
    "MAINLAND",
    "Canonical",
    "Carriage",
    "Condarc",
    "Location",
    "Mirror",
    "Mistake",
    "Table",
    "Tree",
    "canonical_url",
    "canonicalise_url",
    "channel_name",
    "condarc_bases",
    "condarc_text",
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
    "pip_conf_text",
    "published_file",
    "pypi_files",
    "pypi_simple",
    "read_condarc",
    "shown",
    "shown_text",
    "table",
]
