"""Sets of names, the structure of a matrix found from products, and groups of columns that share no row."""

import numpy as np
import pytest

from pullback.transforms.sparsity.input_sets import Sets
from pullback.transforms.sparsity.linear_structure import selected, structure_of
from pullback.transforms.sparsity.pattern_groups import groups_of_columns

# ----------------------------------------------------------------------------------------------------------------- sets


@pytest.mark.parametrize("seed", range(5))
def test_sets_are_sets(seed):
    """Against Python's own."""
    rng = np.random.default_rng(seed)
    table = Sets()
    names = list(table.sources(12))
    known = [frozenset((k,)) for k in range(12)] + [frozenset()]
    names.append(np.int64(0))
    for _ in range(40):
        i, j = rng.integers(0, len(names), (2, 5))
        made = table.union(np.array([names[k] for k in i]), np.array([names[k] for k in j]))
        names += list(made)
        known += [known[a] | known[b] for a, b in zip(i, j, strict=True)]
    for name, members in zip(names, known, strict=True):
        assert set(table.of(np.array([name]))[1].tolist()) == members
    by_name = dict(zip(map(int, names), known, strict=True))
    assert len(by_name) == len(set(known)), "equal sets have one name"


def test_sets_that_no_longer_grow_cost_nothing():
    table = Sets()
    u = table.sources(16)
    for _ in range(40):
        u = table.union(u, np.roll(u, 1), np.roll(u, -1))
    assert len(set(u.tolist())) == 1
    before = table.used
    for _ in range(40):
        u = table.union(u, np.roll(u, 1), np.roll(u, -1))
    assert table.used == before


@pytest.mark.parametrize("seed", range(4))
def test_the_structure_of_a_matrix_is_found_from_products(seed):
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 40, 2)
    matrix = rng.standard_normal((k, n)) * (rng.random((k, n)) < [0.05, 0.3, 0.0, 1.0][seed])
    rows_found, columns_found = structure_of(lambda x: matrix @ x, int(n), int(k))
    found = np.zeros((k, n), bool)
    found[rows_found, columns_found] = True
    np.testing.assert_array_equal(found, matrix != 0)


def test_a_band_takes_few_products_and_a_full_matrix_gives_up():
    n, products = 1000, 0

    def banded(x):
        nonlocal products
        products += 1
        return 2 * x - np.concatenate([x[1:], [0.0]])

    found = structure_of(banded, n, n)
    assert len(found[0]) == 2 * n - 1
    assert products < 80
    assert structure_of(lambda x: np.full(n, np.sum(x)), n, n, limit=100) is None


def test_maps_that_hand_on_elements_are_told_from_others():
    assert selected(lambda x: x[[2, 0, 0]], 3).tolist() == [2, 0, 0]
    assert selected(lambda x: np.concatenate([[0.0], x]), 2).tolist() == [-1, 0, 1]
    for other in (lambda x: 2.0 * x, np.cumsum, lambda x: x[:1] + x[1:2], lambda x: -x):
        assert selected(other, 4) is None
    assert selected(lambda x: x, 0) is None


@pytest.mark.parametrize("seed", range(4))
def test_no_row_has_two_columns_of_one_group(seed):
    from scipy.sparse import csr_array  # noqa: PLC0415 - beside the library's own lazy import

    pattern = csr_array(np.random.default_rng(seed).random((30, 20)) < 0.1)
    groups = groups_of_columns(pattern)
    for row in pattern.toarray():
        mine = groups[row]
        assert len(set(mine.tolist())) == len(mine)
    assert groups_of_columns(csr_array(np.zeros((3, 4), bool))).tolist() == [0] * 4
