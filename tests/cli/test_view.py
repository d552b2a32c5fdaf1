"""The live view shows the words of policies and operators; a terminal must not obey them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rich.text import Text

from rheostat.cli import console
from rheostat.cli.live_view import View, describe_turn
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Outcome, Status
from rheostat.model.rewrite import Rewrite
from rheostat.run.samples import Sampler
from tests.journal.samples import turns

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b2J"


def shown(what: Any) -> str:
    with console.out.capture() as captured:
        console.out.print(what)
    return captured.get()


def test_the_live_view_shows_no_control_characters() -> None:
    turn = turns(10)[-1]
    plan = replace(turn.plan, reason=f"why {ESCAPE}", alert=f"beware {ESCAPE}")
    engine: Any = SimpleNamespace(
        configuration=Configuration({f"split{ESCAPE}": 2}, 1, 1),
        kinds=(NodeKind(),),
        provider=SimpleNamespace(nodes=lambda: ()),
        doing=f"nodes {ESCAPE}",
    )
    view = View(f"app {ESCAPE}", engine, Sampler(engine))
    view.add(replace(turn, plan=plan))
    text = shown(view)
    assert "why ?]0;owned??[2J?2J" in " ".join(text.split())
    assert not {"\x1b", "\x07", "\x9b"} & set(text)


def test_replaced_characters_count_for_the_width_of_a_table() -> None:
    table = console.table("", "name", "number")
    table.add_row(f"a{ESCAPE}", "1")
    table.add_row("b", "2")
    first, second = shown(table).splitlines()[-2:]
    assert len(first.rstrip()) == len(second.rstrip())


def test_rich_text_is_made_safe_too() -> None:
    assert shown(Text("x\x1b[2J\x9b2J", "bold")).strip() == "x?[2J?2J"
    assert shown("a\ttab and a\nline").split() == ["a", "tab", "and", "a", "line"]


def test_a_rewrite_says_what_it_changed_or_was_to_change() -> None:
    turn = turns(10)[-1]
    now = turn.plan.current
    rewrite = Rewrite(("count",), 200, 4, 12.0, 0.9, 17.0)
    plan = replace(turn.plan, target=now, rewrite=rewrite, reason="too many")

    def worded(status: Status) -> str:
        return describe_turn(replace(turn, plan=plan, outcome=Outcome(status, now, 1.0, 3.0, "it died")))

    change = "state of count 200 -> 4 partitions"
    assert worded(Status.FAILED) == f"FAILED: it died; wanted {change} because too many"
    assert worded(Status.APPLIED) == f"{change} (2.0 s) because too many"
