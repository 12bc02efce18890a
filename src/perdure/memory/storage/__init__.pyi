"""Storage for the values of layers.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.memory.storage.adapter import Loaded, ScopedStorage, StorageAdapter, get_many, owner_prefix
from perdure.memory.storage.adapters import FileStorage, InMemoryStorage, replace_file
from perdure.memory.storage.app_storage import AppStorage, PostgresStorage, SqliteStorage
from perdure.memory.storage.key_values import Delete, Put, Storage
from perdure.memory.storage.fields import EXCLUDE, Fields, PERSIST, recompute
__all__ = [
    "Loaded",
    "ScopedStorage",
    "StorageAdapter",
    "get_many",
    "owner_prefix",
    "FileStorage",
    "InMemoryStorage",
    "replace_file",
    "AppStorage",
    "PostgresStorage",
    "SqliteStorage",
    "Delete",
    "Put",
    "Storage",
    "EXCLUDE",
    "Fields",
    "PERSIST",
    "recompute",
]
