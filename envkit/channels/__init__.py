"""What channels are called and where they lie: names, canonical URLs, the table of mirrors.

Text alone: nothing here opens a connection. A mirror is a transport, so whatever names one (a spec, a lock,
a .condarc) is read as the channel it stands for.
"""

from envkit.channels.names import Location, canonical_url, channel_name, locate
from envkit.channels.table import Carriage, Mirror, Table, table
from envkit.channels.urls import local_path, shown

__all__ = [
    "Carriage",
    "Location",
    "Mirror",
    "Table",
    "canonical_url",
    "channel_name",
    "local_path",
    "locate",
    "shown",
    "table",
]
