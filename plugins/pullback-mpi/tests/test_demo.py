"""``mpiexec -n 2 pullback demo wave --mpi``: its figures as JSON, and its table."""

import json

SMALL = "demo wave --mpi --grid 40 48 --steps 30 --repeat 1 --quiet --policy SaveAll".split()


def test_the_demo_compares_ranks_with_the_undivided_program(ranks):
    code, output = ranks(2, "demo.py", *SMALL, "then", *SMALL, "--policy", "Binomial(4)", "--json")
    assert code == 0, output
    table, begin, text = output.partition("{")
    assert table.count("gradient of wave misfit, 40 x 48 nodes, 30 steps, rows on 2 ranks") == 1
    assert "speed-up" in table and "SaveAll()" in table and "NO" not in table
    found = json.loads(begin + text)
    assert (found["ranks"], found["steps"]) == (2, 30)
    first, second = found["rows"]
    for row in (first, second):
        assert row["same_bits"]
        assert row["apart"] < 1e-14 and row["value_apart"] < 1e-13
        assert row["speed_up"] > 0
    each = 8 * 48 + 160  # one row and a head, once forward and once in reverse from each rank in every step
    assert first["sent_bytes"] > 2 * 2 * 30 * each
    assert second["sent_bytes"] > first["sent_bytes"] + 2 * 20 * each
