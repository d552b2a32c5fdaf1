"""The short version of the chaos suite: two faults on real Spark and Kafka, and nothing is lost."""

from pathlib import Path

import pytest

from .arena import arena, brokers
from .attacks import FAULTS, SHORT, STEPS, everything

SEED = 0


@pytest.mark.no_jvm
def test_the_long_version_has_every_fault_at_every_step_and_is_repeatable() -> None:
    attacks = everything(1, 100)
    assert attacks == everything(1, 100) != everything(2, 100)
    assert len(attacks) == 100
    steps = {(a.fault, a.change, a.step) for a in attacks if a.change}
    assert steps == {(f, change, step) for f in FAULTS for change, names in STEPS.items() for step in names}
    assert {a.fault for a in attacks if not a.change} == set(FAULTS)


def test_after_every_fault_it_runs_again_and_no_row_is_lost_or_doubled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with brokers(tmp_path / "broker") as broker, arena(tmp_path, SEED, broker) as under:
        for attack in SHORT:
            survived = under.attack(attack)
            with capsys.disabled():
                print(
                    f"\n  {attack.fault:10}  {survived.seconds:5.1f} s  {attack.moment}", end="", flush=True
                )
            assert survived.seconds < under.again_seconds
        assert under.end() > 0
