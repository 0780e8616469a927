"""The tree of a sum is decided by the number of its nodes, and blocks of 2, 4, 8 ... nodes are subtrees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.scaling import tree_sum


def joined(left, right):
    return f"({left}{right})"


@pytest.mark.parametrize(
    ("nodes", "tree"),
    [
        ("a", "a"),
        ("ab", "(ab)"),
        ("abc", "((ab)c)"),
        ("abcd", "((ab)(cd))"),
        ("abcdef", "(((ab)(cd))(ef))"),
        ("abcdefg", "(((ab)(cd))((ef)g))"),
    ],
)
def test_the_tree(nodes, tree):
    assert tree_sum(nodes, joined) == tree


@given(st.integers(1, 200), st.integers(0, 6))
def test_blocks_are_subtrees(n, power):
    nodes, size = [f"{k}," for k in range(n)], 2**power
    blocks = [tree_sum(nodes[k : k + size], joined) for k in range(0, n, size)]
    assert tree_sum(blocks, joined) == tree_sum(nodes, joined)


@given(st.integers(1, 300))
def test_few_sums_are_held_at_once(n):
    held = most = 0

    def nodes():
        nonlocal held, most
        for _ in range(n):
            held += 1
            most = max(most, held)
            yield 1

    def add(left, right):
        nonlocal held
        held -= 1
        return left + right

    assert tree_sum(nodes(), add) == n
    assert most <= n.bit_length()


def test_no_nodes_no_sum():
    with pytest.raises(pb.PullbackError, match="there are no items, and so no sum"):
        tree_sum([], joined)
