"""``pb.over_executor`` on the executor of ``mpi4py.futures``: a cluster without a scheduler of tasks."""


def test_a_sum_over_items_on_ranks_has_the_bits_of_threads(on_executor):
    code, output = on_executor(3, "executor.py")
    assert code == 0, output
    assert output.splitlines()[-1] == "the same bits"
