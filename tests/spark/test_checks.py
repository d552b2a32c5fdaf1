"""What a mode cannot run is refused before anything starts; real plans, one local session, no cluster."""

import json
import subprocess
import sys

import pytest

from rheostat.engines.spark.driver.query_topics import topic_name
from rheostat.engines.spark.modes import LEAST_SETTING, check_mode
from rheostat.model.errors import UserError

from .support import APPS


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    command = [sys.executable, str(APPS / "plans.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    results: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return results


@pytest.mark.parametrize("step", ["filter", "aggregate", "explode", "small table"])
def test_real_time_mode_accepts_what_it_can_run(verdicts: dict[str, str], step: str) -> None:
    assert verdicts[f"realtime live {step}"] == "ok"


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("realtime rate filter", "Real-Time Mode reads from Kafka only, not from 'rate'"),
        ("realtime live python", "Real-Time Mode runs no Python function"),
        ("realtime live join", "Real-Time Mode joins no two streams"),
        ("realtime live limit", "Real-Time Mode cannot run"),
        ("microbatch rate batch", "the application reads no stream"),
    ],
)
def test_what_a_mode_cannot_run_is_refused_with_an_alternative(
    verdicts: dict[str, str], plan: str, reason: str
) -> None:
    assert verdicts[plan].startswith(reason)


@pytest.mark.parametrize("step", ["filter", "python", "join", "small table", "aggregate", "explode"])
def test_micro_batches_run_all_of_it(verdicts: dict[str, str], step: str) -> None:
    assert verdicts[f"microbatch rate {step}"] == "ok"


def test_the_state_of_an_aggregation_is_not_rewritten_in_real_time_mode(verdicts: dict[str, str]) -> None:
    assert (
        verdicts["rescale realtime"] == "Spark cannot rewrite the state of an aggregation in Real-Time Mode"
    )
    assert verdicts["rescale microbatch"] == "ok"


@pytest.mark.no_jvm
@pytest.mark.parametrize("operator", ["top words", "it's", "größe", "x" * 240])
def test_an_operator_that_cannot_name_a_topic_is_refused(operator: str) -> None:
    with pytest.raises(UserError, match="cannot be the name of a Kafka topic: name the operators"):
        topic_name("rheostat.shop.0a1b.", operator)


@pytest.mark.no_jvm
def test_a_mode_and_its_trigger_are_checked_at_once() -> None:
    with pytest.raises(UserError, match="choose microbatch or realtime"):
        check_mode("batch", None)
    with pytest.raises(UserError, match="needs a trigger of at least 5 s"):
        check_mode("realtime", 1.0)
    check_mode("realtime", 1.0, {LEAST_SETTING: "1s"})
    check_mode("microbatch", 0.1)
