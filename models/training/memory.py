"""Keep freed memory: glibc gives large arrays back to the system at once, and every new one then costs page faults."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -3, -4, -8  # of glibc's mallopt
LARGEST = 2**31 - 1


@contextmanager
def kept_memory() -> Iterator[None]:
    """Inside, memory that is freed stays with the process and is used again. Elsewhere than on glibc: no effect.

    All threads share one heap: what one of them frees another can use.
    """
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (OSError, AttributeError, TypeError):
        yield
        return
    for option, value in ((MMAP_MAX, 0), (TRIM_THRESHOLD, LARGEST), (ARENA_MAX, 1)):
        mallopt(option, value)
    try:
        yield
    finally:
        for option, value in ((MMAP_MAX, 65536), (TRIM_THRESHOLD, 128 * 1024), (MMAP_THRESHOLD, 128 * 1024)):
            mallopt(option, value)
        trim(0)
