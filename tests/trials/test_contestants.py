"""Who takes part in a trial, and what is kept of it."""

import json
import re
from pathlib import Path

import pytest

from rheostat.model.configuration import Bounds
from rheostat.model.errors import FileError, UserError
from rheostat.trials import rounds
from rheostat.trials.contestants import contestant
from rheostat.trials.trial import Trial, read_result
from tests.trials.results import TRIAL, result


def test_contestants_have_their_policy_and_their_bounds() -> None:
    given = Bounds(2, 6)
    assert contestant("static-min").bounds(given) == Bounds(2, 2)
    assert contestant("static-peak").bounds(given) == Bounds(6, 6)
    assert contestant("spark-dra").allocated and contestant("spark-dra").bounds(given) == given
    tried = contestant("ds2(restart_time=5)")
    assert (tried.policy, tried.allocated) == ("ds2(restart_time=5)", False)
    assert re.fullmatch(r"ds2-restart_time=5-[0-9a-f]{6}", tried.folder)
    assert contestant("ds2 (restart_time=5)").folder != tried.folder


def test_results_are_kept(tmp_path: Path) -> None:
    made, path = result("ours"), tmp_path / "result.json"
    path.write_bytes(made.json())
    assert read_result(path) == made
    for spoiled in ('{"contestant": 3}', '{"contestant": "x", "number": 1}', "{", ""):
        path.write_text(spoiled)
        with pytest.raises(FileError, match="is not the result of a trial; delete it"):
            read_result(path)


def test_trial_json_holds_no_secret() -> None:
    given = {"spark.a.password": "hunter22", "spark.b": "seen"}
    kept = Trial(**{**TRIAL.__dict__, "settings": given}).json()
    assert "seen" in kept and "hunter22" not in kept and "password" not in kept


def test_a_trial_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    kept = json.loads(TRIAL.json())
    del kept["node"]["price_per_hour"]  # it had none yet
    (tmp_path / "contest.json").write_text(json.dumps(kept))
    rounds.prepare(tmp_path, TRIAL)
    for other in ({**kept, "seed": 7}, {**kept, "nodes": 3}, "nonsense"):
        (tmp_path / "trial.json").write_text(json.dumps(other))
        with pytest.raises(UserError, match="holds a trial with other options"):
            rounds.prepare(tmp_path, TRIAL)
