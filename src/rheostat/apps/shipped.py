"""The applications that ship with Rheostat, by name. Imports none of them, so it needs no Spark."""

import ast
from importlib.resources import files
from pathlib import Path

from rheostat.model.errors import UserError, nearest

_SCRIPT = "app.py"


def shipped_scripts() -> dict[str, Path]:
    """Return the scripts of the applications, by name."""
    folder = Path(str(files("rheostat.apps")))
    return {script.parent.name: script for script in sorted(folder.glob(f"*/{_SCRIPT}"))}


def first_line(script: Path) -> str:
    """Return the first line of a script's docstring, without running the script."""
    docstring = ast.get_docstring(ast.parse(script.read_text())) or ""
    return docstring.partition("\n")[0]


def find_script(word: str) -> Path:
    """Return a user's script, or the built-in one of that name."""
    scripts = shipped_scripts()
    if word in scripts and not Path(word).is_file():
        return scripts[word]
    if not word.endswith(".py") and not Path(word).exists():
        raise UserError(f"there is no script and no application {word!r}{nearest(word, scripts)}")
    return Path(word)
