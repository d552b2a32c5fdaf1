"""Secret settings, and how they are kept out of everything that is shown or written."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rheostat.model.errors import FileError

# Spark's default for spark.redaction.regex, Kafka's setting that holds a user and a password, and the
# names of cloud providers' keys.
_KEYS = re.compile(
    r"(?i)secret|password|token|(access|account|private|api)[._-]?key(?!store)|[.]sas[.]|credential(?!s?[.]provider)"
    r"|sasl[.]jaas[.]config"
)
_VALUES = re.compile(r"(?i)(secret|password|passwd|token)\w*=")  # options and addresses that hold a secret
HIDDEN = "*********(redacted)"  # as Spark writes it
SHORTEST = 4  # characters; a shorter value would be found in every text
OTHERS = 0o077  # the permissions of everybody but the owner


def is_secret(key: str, value: str = "") -> bool:
    """Whether a setting must not be shown, judging by its name or its value.

    >>> is_secret("spark.hadoop.fs.s3a.secret.key"), is_secret("spark.executor.memory", "1g")
    (True, False)
    >>> is_secret("spark.executor.extraJavaOptions", "-Djavax.net.ssl.keyStorePassword=hunter2")
    True
    """
    return bool(_KEYS.search(key) or _VALUES.search(value))


def secret_values(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The values that must not be shown, longest first, because one value may be part of another."""
    secrets = {value for key, value in settings.items() if is_secret(key, value) and len(value) >= SHORTEST}
    return tuple(sorted(secrets, key=len, reverse=True))


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that anyone may see."""
    return {key: value for key, value in settings.items() if not is_secret(key, value)}


def hide(what: Any, values: tuple[str, ...]) -> Any:
    """A copy of plain data in which no text holds one of the values.

    >>> hide({"error": ["no login with hunter2"]}, ("hunter2",))
    {'error': ['no login with *********(redacted)']}
    """
    if isinstance(what, str):
        for value in values:
            what = what.replace(value, HIDDEN)
        return what
    if isinstance(what, dict):
        return {key: hide(part, values) for key, part in what.items()}
    if isinstance(what, list):
        return [hide(part, values) for part in what]
    return what


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from the first byte on."""
    path.unlink(missing_ok=True)  # an old file would keep its permissions
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def properties(settings: Mapping[str, str]) -> bytes:
    r"""Settings in the format of a Java properties file.

    >>> properties({"spark.a": "b\\c", "spark.d": "1\n2"}).decode().splitlines()
    ['spark.a=b\\\\c', 'spark.d=1\\n2']
    """
    lines = []
    for key, value in settings.items():
        name = re.sub(r"([\\=: #!])", r"\\\1", key)
        text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        lines.append(f"{name}={text}\n")
    return "".join(lines).encode()


def read_properties(path: Path) -> dict[str, str]:
    """Read lines as in spark-defaults.conf, `key value` or `key=value`, of a file that others cannot read."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & OTHERS:
                raise FileError(f"{path}: others can read it, and it may hold secrets: chmod 600 {path}")
            text = file.read(2**20 + 1).decode()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise FileError(f"{path}: not UTF-8 text") from None
    if len(text) > 2**20:
        raise FileError(f"{path}: larger than 1 MB; settings are small")
    settings = {}
    for number, line in enumerate(text.splitlines(), 1):
        stated = line.strip()
        if not stated or stated.startswith("#"):
            continue
        match = re.fullmatch(r"(spark\.[^\s=]+)(?:\s*=\s*|\s+)(.*)", stated)
        if match is None:  # the line is not shown: it may be a secret
            raise FileError(f"{path}, line {number}: write it as spark.some.key VALUE")
        settings[match[1]] = match[2]
    return settings
