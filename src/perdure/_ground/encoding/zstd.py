"""Compression by zstd, loaded when first used, and never unpacking more than was announced.

A frame of 6 kB can unpack to 200 MB, so each reader says how many bytes it expects and gets exactly
that many or an error. Whether compressing is worth it is decided in envelope.py and deltas.py.
"""

from __future__ import annotations

import importlib
import sys
import threading
from functools import cache
from typing import Any

# Above 128 MB of window readers need special settings; nothing we store is that large.
_WIDEST_WINDOW_LOG = 27
_NARROWEST_WINDOW_LOG = 10
# Long-distance matching finds what the small tables of a quick level have already forgotten.
_LONG = 1 << 20

_of_thread = threading.local()


@cache
def _library() -> Any:
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def pack(data: bytes, level: int) -> bytes:
    # A compressor that is used again is three times as fast on a small record. One for each thread: a lock
    # held by another thread during os.fork() would stay held in the child.
    kept: dict[int, Any] | None = getattr(_of_thread, "compressors", None)
    if kept is None:
        kept = _of_thread.compressors = {}
    compressor = kept.get(level)
    if compressor is None:
        compressor = kept[level] = _library().ZstdCompressor(level)
    packed: bytes = compressor.compress(data, compressor.FLUSH_FRAME)
    return packed


def pack_after(prefix: bytes, data: bytes, level: int) -> bytes:
    """Pack data that resembles `prefix`, which the reader has too."""
    zstd = _library()
    total = len(prefix) + len(data)
    options = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.window_log: _window_log(total),
        zstd.CompressionParameter.enable_long_distance_matching: int(total > _LONG),
    }
    packed: bytes = zstd.compress(data, options=options, zstd_dict=_as_prefix(prefix))
    return packed


def unpack(packed: bytes | memoryview, length: int, prefix: bytes = b"") -> bytes:
    """Exactly `length` bytes, unpacked without ever holding more.

    Raises:
        ValueError: the frame is broken, or has another size than that.
    """
    zstd = _library()
    options = {zstd.DecompressionParameter.window_log_max: _window_log(length + len(prefix))}
    unpacker = zstd.ZstdDecompressor(zstd_dict=_as_prefix(prefix), options=options)
    try:
        data: bytes = unpacker.decompress(packed, max_length=length)
        surplus = b"" if unpacker.eof else unpacker.decompress(b"", max_length=1)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from None
    if surplus or not unpacker.eof or unpacker.unused_data or len(data) != length:
        raise ValueError(f"it does not unpack to the {length:,} bytes it announces")
    return data


def _as_prefix(prefix: bytes) -> Any:
    # Less than eight bytes the library refuses, and they would not help.
    return _library().ZstdDict(prefix, is_raw=True).as_prefix if len(prefix) >= 8 else None


def _window_log(size: int) -> int:
    return min(max(size.bit_length(), _NARROWEST_WINDOW_LOG), _WIDEST_WINDOW_LOG)
