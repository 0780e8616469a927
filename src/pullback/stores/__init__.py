"""Where entries of a schedule are stored other than by reference: disk, any fsspec URL, compressed memory.

May import: words, policies, recording.
"""

from pullback.stores.codecs import AsType as AsType
from pullback.stores.codecs import Zlib as Zlib
from pullback.stores.disk import Disk as Disk
from pullback.stores.in_memory import InMemory as InMemory
from pullback.stores.optional_codecs import Blosc2 as Blosc2
from pullback.stores.optional_codecs import Zfp as Zfp
from pullback.stores.orphans import remove_orphans as remove_orphans
from pullback.stores.stored import Stored as Stored
