"""Conformance cases of ptp, average, cov and corrcoef."""

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(9)
CUBE = RNG.permutation(np.linspace(-3.1, 4.2, 24)).reshape(2, 3, 4)
WEIGHTS = RNG.uniform(0.2, 2.0, (2, 3, 4))
TABLE, OTHER = RNG.normal(size=(3, 6)), RNG.normal(size=(2, 6))
WAVES = TABLE + 1j * RNG.normal(size=(3, 6))
TIMES = np.array([1, 3, 2, 1, 1, 2])
BOTH = ("float32", "float64")
AXES = (None, 0, -1, (0, 2))


def _averages() -> tuple[Case, ...]:
    rows = [
        *(Case(f"ptp axis={a}", lambda x, a=a: np.ptp(x, a), (CUBE,), ("ptp",), dtypes=BOTH) for a in AXES),
        Case("ptp keepdims", lambda x: np.ptp(x, (0, 1), keepdims=True), (CUBE,), ("ptp",)),
        Case("ptp ties", np.ptp, (np.array([1.0, 4.0, 1.0, 4.0]),), ("ptp",), rough="tie"),
    ]
    for a in AXES:
        rows += [
            Case(f"average axis={a}", lambda x, a=a: np.average(x, a), (CUBE,), ("average",), dtypes=BOTH),
            Case(
                f"average weights axis={a}",
                lambda x, w, a=a: np.average(x, a, w),
                (CUBE, WEIGHTS),
                ("average",),
                dtypes=BOTH,
            ),
            Case(
                f"average returned axis={a}",
                lambda x, w, a=a: np.average(x, a, weights=w, returned=True, keepdims=True),
                (CUBE, WEIGHTS),
                ("average",),
            ),
            Case(
                f"average returned, no weights axis={a}",
                lambda x, a=a: np.average(x, a, returned=True),
                (CUBE,),
                ("average",),
            ),
        ]
    return (
        *rows,
        Case("average weights alone", lambda w: np.average(CUBE, weights=w), (WEIGHTS,), ("average",)),
        Case(
            "average of integers",
            lambda w: np.average(np.arange(4), weights=w, returned=True),
            (WEIGHTS[0, 0],),
            ("average",),
        ),
        Case(
            "average weights along one axis", lambda x, w: np.average(x, 1, w), (CUBE, WEIGHTS[0, :, 0]), ("average",)
        ),
        Case(
            "average weights along two axes",
            lambda x, w: np.average(x, (2, 0), w),
            (CUBE, WEIGHTS[:, 0, :].T),
            ("average",),
        ),
        Case(
            "average returned, broadcast",
            lambda x, w: np.average(x, 1, w, returned=True),
            (CUBE, WEIGHTS[0, :, 0]),
            ("average",),
        ),
        Case("average mixed precision", lambda w: np.average(CUBE.astype("f4"), 0, w), (WEIGHTS,), ("average",)),
        Case("average complex", lambda x, w: np.average(x, 1, w), (WAVES, WEIGHTS[0, 0, :3].repeat(2)), ("average",)),
    )


GRAM, PRODUCT = ("cov", "covariance_gram"), ("cov", "covariance_product")
COVARIANCES: tuple[Case, ...] = (
    Case("cov", np.cov, (TABLE,), GRAM, dtypes=BOTH),
    Case("cov of one variable", np.cov, (TABLE[0],), GRAM),
    Case("cov of two", np.cov, (TABLE[0], TABLE[1]), GRAM),
    Case("cov y", np.cov, (TABLE, OTHER), GRAM),
    Case("cov y alone", lambda y: np.cov(TABLE, y), (OTHER,), GRAM),
    Case("cov rowvar=False", lambda x, y: np.cov(x, y, rowvar=False), (TABLE.T, OTHER.T), GRAM),
    Case("cov rowvar=False, a line", lambda x: np.cov(x, rowvar=False), (TABLE[0],), GRAM),
    Case("cov rowvar=False, a column", lambda x: np.cov(x, rowvar=False), (TABLE[:1].T,), GRAM),
    Case("cov bias", lambda x: np.cov(x, bias=True), (TABLE,), GRAM),
    Case("cov ddof", lambda x: np.cov(x, ddof=2), (TABLE,), GRAM),
    Case("cov fweights", lambda x: np.cov(x, fweights=TIMES), (TABLE,), PRODUCT),
    Case(
        "cov aweights",
        lambda x, w: np.cov(x, aweights=w),
        (TABLE, WEIGHTS[0, :2].reshape(-1)[:6]),
        PRODUCT,
        dtypes=BOTH,
    ),
    Case("cov aweights alone", lambda w: np.cov(TABLE, aweights=w, ddof=0), (WEIGHTS[0, :2].reshape(-1)[:6],), PRODUCT),
    Case(
        "cov both weights",
        lambda x, w: np.cov(x, fweights=TIMES, aweights=w),
        (TABLE, WEIGHTS[0, :2].reshape(-1)[:6]),
        PRODUCT,
    ),
    Case(
        "cov both weights, bias",
        lambda x, w: np.cov(x, None, True, True, None, TIMES, w),
        (TABLE, WEIGHTS[1].reshape(-1)[:6]),
        PRODUCT,
    ),
    Case("cov dtype", lambda x: np.cov(x, dtype=np.float32), (TABLE,), GRAM, rough="rounding"),
    Case(
        "cov fweights, dtype",
        lambda x: np.cov(x, dtype=np.float32, fweights=TIMES),
        (TABLE,),
        PRODUCT,
        rough="rounding",
    ),
    Case("cov complex", np.cov, (WAVES,), GRAM, dtypes=BOTH),
    Case("cov complex weights", lambda x, w: np.cov(x, aweights=w), (WAVES, WEIGHTS[0, :2].reshape(-1)[:6]), PRODUCT),
    Case("corrcoef", np.corrcoef, (TABLE,), ("corrcoef",), dtypes=BOTH),
    Case("corrcoef y", np.corrcoef, (TABLE, OTHER), ("corrcoef",)),
    Case("corrcoef rowvar=False", lambda x: np.corrcoef(x, rowvar=False), (TABLE.T,), ("corrcoef",)),
    Case("corrcoef of one", np.corrcoef, (TABLE[0],), ("corrcoef",)),
    Case("corrcoef dtype", lambda x: np.corrcoef(x, dtype=np.float32), (TABLE,), ("corrcoef",), rough="rounding"),
    Case("corrcoef complex", np.corrcoef, (WAVES,), ("corrcoef",)),
)


CASES: tuple[Case, ...] = (
    *_averages(),
    *COVARIANCES,
)
