"""What a user asked for: an application to run, where, how large, and by which policy."""

import secrets
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rheostat.control.guards import Guards
from rheostat.control.rescaling import Rescale
from rheostat.engines.spark.modes import check_mode
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import UserError
from rheostat.policies.base import Policy

RESCALE_ABOVE = 0.9  # utilisation that justifies stopping a stream to rewrite its state
TRIGGER_SECONDS = {"microbatch": 3.0, "realtime": 5.0}  # where a command chooses the trigger


@dataclass(frozen=True)
class Order:
    """One application, and how to run it."""

    name: str
    script: Path
    policy: Policy
    policy_text: str
    folder: Path
    arguments: tuple[str, ...] = ()
    mode: str = "microbatch"
    master: str | None = None  # None: the embedded cluster
    kinds: tuple[NodeKind, ...] = (NodeKind(),)  # of nodes; the first is the default
    bounds: Bounds = Bounds()
    guards: Guards = field(default_factory=Guards)
    rescale: Rescale = Rescale.ADVISE  # of plain scripts
    checkpoint: str | None = None
    trigger_seconds: float | None = None
    kafka: str | None = None  # HOST:PORT of a broker; if given, Spark gets the Kafka connector
    allocated: bool = False  # Spark's dynamic allocation scales the executors; Rheostat only measures
    dry_run: bool = False
    resume: bool = False
    seed: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> NodeKind:
        """The kind of node that is started unless a policy asks for another."""
        return self.kinds[0]


def with_period(policy: Policy, seconds: float) -> Policy:
    """Return the policy with this period."""
    return replace(policy, period_seconds=seconds)


def choose_trigger(mode: str, given: float | None, spark: Mapping[str, str]) -> float:
    """Return the trigger interval: the given one, or the mode's default; Spark's settings may forbid it."""
    check_mode(mode, None)
    seconds = TRIGGER_SECONDS[mode] if given is None else given
    check_mode(mode, seconds, spark)
    return seconds


def with_secret(order: Order) -> Order:
    """Add a secret: without one, every user of this machine could run code on the embedded cluster as us."""
    if order.master or "spark.authenticate" in order.settings:
        return order
    secret = {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(32)}
    return replace(order, settings={**secret, **order.settings})


def check_script(script: Path) -> None:
    """Refuse a script that cannot be read or is not valid Python, before anything starts."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(script.read_bytes(), str(script), "exec")
    except FileNotFoundError:
        raise UserError(f"{script}: no such script") from None
    except OSError as error:
        raise UserError(f"{script}: cannot be read: {error.strerror or error}") from None
    except SyntaxError as error:
        raise UserError(f"{script}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise UserError(f"{script}: {error}") from None
