"""`python -m rheostat` is `rheostat`."""

from rheostat.cli.main import run

run()
