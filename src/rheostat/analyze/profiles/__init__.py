"""Profiles learned from the windows of a run (P2, section 3.2): what load costs operators and nodes.

`samples.py` takes points from windows; `line.py`, `isotonic.py` and `network.py` are the curves that compete
for them; `contest.py` chooses; `profile.py` is the result, which `document.py` keeps as a file.
"""
