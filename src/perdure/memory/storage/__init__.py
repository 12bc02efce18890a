"""Storage for the values of layers."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "adapter": ("Loaded", "ScopedStorage", "StorageAdapter", "get_many", "owner_prefix"),
        "adapters": ("FileStorage", "InMemoryStorage", "replace_file"),
        "app_storage": ("AppStorage", "PostgresStorage", "SqliteStorage"),
        "key_values": ("Delete", "Put", "Storage"),
        "fields": ("EXCLUDE", "Fields", "PERSIST", "recompute"),
    },
)
