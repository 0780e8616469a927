"""Snapshots in an object store: an S3 server on the loopback, and what its faults become."""

import importlib.util
import pickle

import numpy as np
import pytest
from tests.stores.loopback import BUCKET, Proxy, Server

import pullback as pb
from pullback.stores import Disk, Stored, remove_orphans

MISSING = [name for name in ("moto", "flask", "s3fs") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"the S3 server of the test needs {', '.join(MISSING)}"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),  # of the client's libraries
]
X = np.linspace(0.1, 2.0, 300)
N = 12


def looped(x):
    return np.sum(pb.fori_loop(0, N, lambda k, u: np.sin(u) + 0.1 * u * x, x))


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def proxy(server):
    made = Proxy(server.port)
    yield made
    made.close()
    for key in server.stored():  # what a test has left
        server.asked("DELETE", f"/{BUCKET}/{key}")


def options(port):
    """Of the client, which tries a request twice."""
    return {
        "key": "key", "secret": "secret", "endpoint_url": f"http://127.0.0.1:{port}",
        "client_kwargs": {"region_name": "us-east-1"},
        "config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 5, "read_timeout": 5},
    }  # fmt: skip


def files(port):
    made = importlib.import_module("s3fs").S3FileSystem(skip_instance_cache=True, **options(port))
    made.retries = 1  # its own, besides those of botocore: these wait for seconds
    return made


def under(port, **told):
    return Stored(pb.Binomial(4), memory=Disk(f"{BUCKET}/runs", files=files(port), **told))


def objects(met, method):
    return [path for name, path, _ in met if name == method and path.endswith(".npy")]


def test_the_same_bits_and_nothing_left(server, proxy):
    policy = under(proxy.port, rank=3)
    _, pull = pb.vjp(looped, X, policy=policy)
    there = server.stored()
    assert there
    assert all(key.startswith("runs/pullback-rank3-") and key.endswith(".npy") for key in there)
    np.testing.assert_array_equal(pull(1.0)[0], pb.grad(looped)(X))
    [told] = pull.report.stores
    pull.close()
    assert server.stored() == []
    assert told.n_writes == len(objects(proxy.met, "PUT")) > 4


def test_the_objects_are_written_in_the_order_of_the_steps(proxy):
    pb.grad(looped, policy=under(proxy.port))(X)
    numbers = [int(path.rpartition("/")[2].removesuffix(".npy")) for path in objects(proxy.met, "PUT")]
    assert numbers == sorted(numbers)


def test_a_policy_takes_the_url(server, proxy, monkeypatch):
    """The end point of a URL comes from the environment, as for any client of S3."""
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}", "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    importlib.import_module("s3fs").S3FileSystem.clear_instance_cache()
    policy = pb.Tiered(1, 3, directory=f"s3://{BUCKET}/tiered", write_cost=0.1, read_cost=0.1)
    np.testing.assert_array_equal(pb.grad(looped, policy=policy)(X), pb.grad(looped)(X))
    assert objects(proxy.met, "PUT")
    assert server.stored() == []
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 - what was dumped just now


FAULTS = {
    "a write that is throttled": ("PUT", "throttled", r"array \d+ of the .* could not be written to bucket/runs/"),
    "a write that is cut off": ("PUT", "lost", r"array \d+ of the .* could not be written to bucket/runs/"),
    "a read that is throttled": ("GET", "throttled", r"array \d+ of the .*: the file bucket/runs/.* could not be read"),
    "a read that is cut off": ("GET", "lost", r"array \d+ of the .*: the file bucket/runs/.* could not be read"),
    "half of an object": ("GET", "partial", r"the file bucket/runs/.* (could not be read|has .* bytes where)"),
    "an object that is shorter": ("GET", "shorter", r"the file bucket/runs/.* (could not be read|has .* bytes where)"),
    "other bits": ("GET", "other", r"the file bucket/runs/.* has the checksum .* where .* was written"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_lasts_is_an_error_with_the_part(name, server, proxy):
    method, fault, text = FAULTS[name]
    proxy.fault = lambda asked, path: fault if asked == method and path.endswith(".npy") else None
    with pytest.raises(pb.StoreError, match=text) as caught:
        pb.grad(looped, policy=under(proxy.port, rank="a"))(X)
    assert caught.value.part.startswith("bucket/runs/pullback-ranka-")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - what was dumped just now
    assert (str(again), again.part) == (str(caught.value), caught.value.part)
    assert any(met == fault for _, _, met in proxy.met)
    assert server.stored() == []


@pytest.mark.parametrize(("method", "fault"), [("PUT", "throttled"), ("GET", "lost")])
def test_a_fault_that_passes_is_tried_again_by_the_client(method, fault, proxy):
    left = [1]

    def once(asked, path):
        if asked == method and path.endswith(".npy") and left:
            return left.pop() and fault
        return None

    proxy.fault = once
    np.testing.assert_array_equal(pb.grad(looped, policy=under(proxy.port))(X), pb.grad(looped)(X))
    assert not left


def test_what_killed_runs_have_left_is_removed_by_age(server, proxy):
    store = files(proxy.port)
    for key in ("pullback-rank3-17-ab/1.npy", "pullback-rank3-17-ab/2.npy", "pullback-18-cd/1.npy", "mine/1.npy"):
        store.pipe_file(f"{BUCKET}/runs/{key}", b"bytes")
    store.pipe_file(f"{BUCKET}/runs/pullback-notes.txt/of/mine", b"bytes")
    assert remove_orphans(f"{BUCKET}/runs", 3600, files=store) == []
    assert len([key for key in server.stored() if "/pullback-" in key]) == 4
    removed = remove_orphans(f"{BUCKET}/runs/", 0, files=store)
    assert removed == [f"{BUCKET}/runs/pullback-{name}" for name in ("18-cd", "notes.txt", "rank3-17-ab")]
    assert [key for key in server.stored() if key.startswith("runs/")] == ["runs/mine/1.npy"]
    assert remove_orphans(f"{BUCKET}/runs", 0, files=store) == []
