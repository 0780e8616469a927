import pytest

from pullback.words.byte_sizes import as_bytes, available_bytes
from pullback.words.errors import PolicyError


def lay(root, **files):
    for path, text in {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_the_system_alone(tmp_path):
    assert available_bytes(lay(tmp_path)) == 8000 * 1024


def test_version_2_up_to_the_top(tmp_path):
    group = "sys/fs/cgroup/user/job"
    root = lay(
        tmp_path,
        **{
            "proc/self/cgroup": "0::/user/job\n",
            f"{group}/memory.max": "max\n",
            f"{group}/memory.current": "10\n",
            "sys/fs/cgroup/user/memory.max": "5000\n",
            "sys/fs/cgroup/user/memory.current": "3000\n",
            "sys/fs/cgroup/user/memory.stat": "anon 7\ninactive_file 400\n",
        },
    )
    assert available_bytes(root) == 5000 - 3000 + 400


def test_version_1_in_a_container(tmp_path):
    top = "sys/fs/cgroup/memory"  # the path of the group is that of the host, which is not mounted
    root = lay(
        tmp_path,
        **{
            "proc/self/cgroup": "5:cpu:/x\n4:memory,hugetlb:/docker/3f\n0::/\n",
            f"{top}/memory.limit_in_bytes": "6000\n",
            f"{top}/memory.usage_in_bytes": "5500\n",
            f"{top}/memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
        },
    )
    assert available_bytes(root) == 800


def test_a_group_that_is_full_leaves_nothing(tmp_path):
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "50\n", "sys/fs/cgroup/memory.current": "70\n"}
    assert available_bytes(lay(tmp_path, **files)) == 0


def test_where_nothing_tells(tmp_path, monkeypatch):
    assert available_bytes(tmp_path) is None
    monkeypatch.setattr("pullback.words.byte_sizes.available_bytes", lambda: None)
    with pytest.raises(PolicyError, match="max_bytes='50 %': nothing here tells how much memory is available"):
        as_bytes("50 %", "max_bytes")


def test_a_share_of_what_is_available(monkeypatch):
    monkeypatch.setattr("pullback.words.byte_sizes.available_bytes", lambda: 1000)
    assert [as_bytes(text, "max_bytes") for text in ("50 %", "12.5%", " 100 % ")] == [500, 125, 1000]


@pytest.mark.parametrize("size", ["0 %", "101 %", "%", "-3 %", "1.2.3 MB", "5 apples", 0.5, None, True, -1])
def test_refused(size):
    with pytest.raises(PolicyError, match="is no number of bytes"):
        as_bytes(size, "max_bytes")


def test_units():
    assert [as_bytes(size, "") for size in (7, "7", "2 kB", "1.5 MiB", "3GB")] == [7, 7, 2000, 3 * 2**19, 3 * 10**9]
