"""The programs of cases beside this file, each on several numbers of ranks; more ranks than cores are no matter. From
three on there are some with two neighbours."""

import json
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("program", "n"),
    [
        ("adjoints.py", 1),
        ("adjoints.py", 4),
        ("policies.py", 2),
        ("failures.py", 3),
        pytest.param("adjoints.py", 2, marks=pytest.mark.slow),
        pytest.param("policies.py", 3, marks=pytest.mark.slow),
        pytest.param("failures.py", 2, marks=pytest.mark.slow),
        pytest.param("cubes.py", 8, marks=pytest.mark.slow),
    ],
)
def test_every_case_holds_on_every_rank(program, n, ranks, tmp_path):
    code, output = ranks(n, program, tmp_path)
    told = [json.loads(path.read_text("utf-8")) for path in sorted(tmp_path.glob("*.json"))]
    failed = [f"{name} on rank {k}: {text}" for k, of in enumerate(told) for name, text in of.items() if text != "ok"]
    assert not failed, output
    assert (code, len(told)) == (0, n), output
    assert {len(cases) for cases in told} == {(PROGRAMS / program).read_text("utf-8").count("\n@case\n")}, output
