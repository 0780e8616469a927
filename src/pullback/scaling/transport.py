"""What cannot be sent to another process, or did not come back, as errors that name it."""

import pickle
import sys
from typing import Any

from pullback.words.errors import WorkerError

REMEDIES = {
    "load": "define it at the top of a module, and let it open its files itself",
    "f": "define it at the top of a module, or use an executor that sends functions by value, as loky's and Dask's do",
    "policy": "a BudgetPool without a file is for threads of one process: pass a policy that is a plain value",
    "x": "pass arrays, in dicts, lists or tuples",
    "item": "pass what it is made from, such as the name of a file, and open it within f",
}
"""What to do about each of the things that are sent."""


def sendable_error(error: Exception) -> Exception:
    """``error``, if it comes back whole from a pickle; else a :class:`WorkerError` that says what it was.

    One that fails when it is unpickled would break the pool it comes from.
    """
    for pickler in _picklers():
        try:
            sent = pickler.dumps(error)
        except Exception:  # noqa: BLE001, S112 - pickling calls the user's code, which may raise anything
            continue
        try:
            if type(pickle.loads(sent)).__name__ == type(error).__name__:  # noqa: S301 - dumped just now
                return error
        except Exception:  # noqa: BLE001 - as above
            break
    kind = type(error)
    return WorkerError(
        f"{kind.__module__}.{kind.__qualname__}: {error}; an error of that class does not come back from a pickle: "
        "give its __init__ the arguments that Exception.__init__ gets, and define it at the top of a module"
    )


def unsendable(sent: dict[str, Any]) -> str:
    """Which of the things that were to be sent, by name, cannot be pickled and why, and what to do; an empty string
    where all can. A name may say more than what kind of thing it is: ``"item 3"``."""
    faults = {pickler.__name__: list(_faults(sent, pickler)) for pickler in _picklers()}
    # Who sends by value refuses less, and what it refuses nobody sends.
    return "; ".join(faults.get("cloudpickle") or faults["pickle"])


def _faults(sent: dict[str, Any], pickler: Any) -> Any:
    for name, thing in sent.items():
        try:
            pickler.dumps(thing)
        except Exception as error:  # noqa: BLE001 - pickling calls the user's code, which may raise anything
            yield f"{name} cannot be pickled ({type(error).__name__}: {error}); {REMEDIES[name.split()[0]]}"


def explained(error: BaseException, sent: dict[str, Any]) -> WorkerError:
    """A :class:`WorkerError` for what an engine raised itself: what of ``sent`` it could not send, else what it
    said."""
    return WorkerError(
        unsendable(sent)
        or f"what was sent away did not come back: {type(error).__name__}: {error}; a worker was killed or ran out of "
        "memory, or the pool or its client was closed. Make a new one, with fewer workers where memory is short"
    )


def _picklers() -> tuple[Any, ...]:
    """The standard pickler, and the one by value where the process has it already."""
    by_value = sys.modules.get("cloudpickle")
    return (pickle,) if by_value is None else (pickle, by_value)
