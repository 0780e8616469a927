"""What runs on the workers. What is sent travels as bytes: what a task unpickles is its own, whatever another task did
to it, and a task that is computed again begins with the same."""

import time
from collections import OrderedDict
from functools import partial
from threading import Lock
from typing import Any

import cloudpickle

import pullback as pb
from pullback.scaling import Term, plus, sendable_error, tree_sum

TimedPart = tuple[Any, float]
"""A value and a gradient, and the seconds that items took to compute."""
TERMS = 8
"""How many terms a worker keeps unpickled."""
_terms: OrderedDict[bytes, Term] = OrderedDict()
_lock = Lock()


def held(sent: bytes) -> bytes:
    """What was sent, to be held by a worker. Where the worker dies, the scheduler sends it to another one."""
    return sent


def term_of(sent: bytes) -> Term:
    """The term, unpickled once for a worker: a function that is sent by value would be a new one in each task, with
    generated code of its own, and threads would not share a ``BudgetPool``."""
    with _lock:
        if sent not in _terms:
            try:
                _terms[sent] = cloudpickle.loads(sent)
            except Exception as error:
                raise pb.WorkerError(
                    f"the function cannot be unpickled on a worker ({type(error).__name__}: {error}); install there "
                    "what it imports, or send its module by client.upload_file"
                ) from error
        _terms.move_to_end(sent)
        while len(_terms) > TERMS:
            _terms.popitem(last=False)
        return _terms[sent]


def batch_part(term: bytes, x: bytes, first: int, *batches: bytes) -> TimedPart:
    """Value and gradient of the sum over the items of some batches, the first of which has that number."""
    begun = time.perf_counter()
    try:
        ran, x = term_of(term), cloudpickle.loads(x)
        items = (item for batch in batches for item in cloudpickle.loads(batch))
        parts = (ran(x, item, number) for number, item in enumerate(items, first))
        return tree_sum(parts, partial(plus, in_place=True)), time.perf_counter() - begun
    except Exception as error:
        told = sendable_error(error)
        if told is error:
            raise
        raise told from error


def added(left: TimedPart, right: TimedPart) -> TimedPart:
    """The sum of two."""
    return plus(left[0], right[0]), left[1] + right[1]
