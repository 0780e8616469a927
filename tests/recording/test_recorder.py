"""Records are made of forms, which are one for each way of a call, whichever threads come first."""

from threading import Barrier, Thread

import numpy as np

import pullback as pb
from pullback.recording import recorder


def test_two_threads_that_come_first_have_one_form(monkeypatch):
    """A policy compares records of a step by the number of their form: two would be a false ReplayError."""
    together, forms, make_form = Barrier(2, timeout=5), [], recorder.make_form

    def both_at_once(prim, *args, **kwargs):
        made = make_form(prim, *args, **kwargs)
        together.wait()  # neither has seen the other's
        return made

    @pb.primitive
    def doubled(x):
        return 2 * x

    doubled.vjp("x")(lambda ct: 2 * ct)

    def run():
        def f(x):
            out = doubled(x)
            forms.append(out._tape.records[-1][0])
            return np.sum(out)

        pb.grad(f)(np.ones(3))

    monkeypatch.setattr(recorder, "make_form", both_at_once)
    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(forms) == 2
    assert forms[0] == forms[1]
