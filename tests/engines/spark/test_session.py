"""Which executors a session knows, on a scripted Spark."""

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from rheostat.engines.spark.driver.session import Session


class Sequence(list[Any]):
    """One of Scala's."""

    def size(self) -> int:
        return len(self)

    def apply(self, index: int) -> Any:
        return self[index]

    def mkString(self, between: str) -> str:  # noqa: N802
        return between.join(self)


@dataclass
class Tap:
    """Has heard of these executors."""

    heard: dict[str, str] = field(default_factory=dict)

    def executors(self) -> str:
        return json.dumps(
            [{"id": number, "host": "h", "slots": 2, "page": page} for number, page in self.heard.items()]
        )

    def seed(self, number: str, _host: str, _slots: int, page: str) -> None:
        self.heard.setdefault(number, page)


def listed(number: str) -> Any:
    """An executor in Spark's store."""
    logs = {"stdout": SimpleNamespace(isDefined=lambda: True, get=lambda: f"http://worker/{number}")}
    return SimpleNamespace(
        id=lambda: number, hostPort=lambda: "127.0.0.1:1", totalCores=lambda: 2, executorLogs=lambda: logs
    )


def session(tap: Tap, registered: list[str], stored: list[str]) -> Session:
    made = Session.__new__(Session)
    made._tap, made._warms_up, made._tells = tap, False, False
    backend = SimpleNamespace(getExecutorIds=lambda: Sequence(registered))
    store = SimpleNamespace(executorList=lambda _active: Sequence(map(listed, ["driver", *stored])))
    made._scala = SimpleNamespace(schedulerBackend=lambda: backend, statusStore=lambda: store)
    return made


def ids(made: Session) -> list[str]:
    return [executor.id for executor in made.executors()]


def test_an_executor_that_registered_before_the_tap_listened_is_listed_once_sparks_store_has_it() -> None:
    tap, registered, stored = Tap(), ["0"], list[str]()
    made = session(tap, registered, stored)
    assert ids(made) == []  # the store has not heard of it either
    stored.append("0")
    made = session(tap, registered, stored)
    assert ids(made) == ["0"]
    assert tap.heard == {"0": "http://worker/0"}


def test_an_executor_that_is_gone_does_not_come_back_from_a_late_store() -> None:
    made = session(Tap({"1": "http://worker/1"}), registered=["1", "2"], stored=["0", "1", "2"])
    assert ids(made) == ["1", "2"]
