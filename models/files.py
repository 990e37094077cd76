"""Writing files so that a crash, a full disk or Ctrl-C never harms the earlier version."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradproof.models.errors import CheckpointError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`; when the block ends well it takes the place of `path`, in one step.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print(Path(folder, "a.txt").read_text(), os.listdir(folder))
    whole ['a.txt']
    """
    target = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    target.parent.mkdir(parents=True, exist_ok=True)
    # The temporary file must lie in the same folder: a rename is atomic only within one file system.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(b"")
        mode = temporary.stat().st_mode  # what the user's umask gives; some writers make private files
        yield temporary
        temporary.chmod(mode)
        _flush_to_disk(temporary)
        os.replace(temporary, target)
        with suppress(OSError):  # some file systems cannot flush a folder; the rename itself has happened
            _flush_to_disk(target.parent)
    finally:
        with suppress(OSError):
            temporary.unlink()


def make_folder(path: str | os.PathLike[str]) -> None:
    """The folder, and those it lies in, unless they exist; an error if no file can be made in it."""
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except FileExistsError:
        raise CheckpointError(f"{path} is a file: a run needs a folder") from None
    except OSError as error:
        raise CheckpointError(f"cannot write to the folder {path}: {reason(error)}") from None


def _flush_to_disk(path: Path) -> None:
    # Without it a power cut after the rename could leave a file of the right name and no content.
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reason(error: BaseException) -> str:
    """What went wrong while reading or writing, in words for a person.

    >>> reason(OSError(errno.ENOSPC, "x"))
    'the disk is full'
    """
    number = getattr(error, "errno", None)
    text = str(error)
    if number == errno.ENOSPC or "No space left" in text or "os error 28" in text:
        return "the disk is full"
    if number == errno.EFBIG or "File too large" in text:
        return "the file is larger than this system allows"
    if number == errno.ENOENT:
        return "there is no such file"
    if number == errno.EISDIR:
        return "it is a folder, not a file"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "permission denied"
    return getattr(error, "strerror", None) or text or type(error).__name__
