"""Spark settings from the command line: --conf for what everybody may see, --conf-file for secrets."""

from pathlib import Path

from rheostat.model.errors import UserError
from rheostat.model.secrets import is_secret, read_properties


def read(pairs: list[str] | None, file: Path | None) -> dict[str, str]:
    """Read both; --conf wins. Errors name keys only, as a value may be a secret."""
    settings = read_properties(file) if file is not None else {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UserError("--conf: a setting has no =; write it as spark.some.key=VALUE")
        if not key.startswith("spark."):
            raise UserError(f"--conf {key!r}: write it as spark.some.key=VALUE")
        if is_secret(key, value):
            raise UserError(
                f"--conf {key}: every user of this machine could read this secret in the process list; "
                "put it in a file and use --conf-file"
            )
        settings[key] = value
    return settings
