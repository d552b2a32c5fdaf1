"""Writes files atomically: a file is complete or absent, whatever the disk does."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rheostat.model.errors import FileError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file to write, which replaces `path` once it is complete and is deleted if that fails.

    Anything but a regular file, such as /dev/stdout, is written to directly.
    """
    fresh = None
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = path.resolve()  # a link keeps pointing to it
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        fresh = target.with_name(f".{os.getpid()}-{target.name}")  # the suffix may determine the format
        yield fresh
        if target.exists():
            shutil.copymode(target, fresh)
        fresh.replace(target)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if fresh is not None:
            fresh.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; a reader sees the old one or the new one, never a part."""
    with replacing(path) as fresh:
        fresh.write_bytes(content)


def make_folder(folder: Path) -> None:
    """Make a folder for results, or say why that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be created: {error.strerror or error}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{folder}: cannot be written to; choose another folder with --out")
