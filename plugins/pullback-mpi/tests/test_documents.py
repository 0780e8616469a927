"""The programs of the documents run on two ranks as they stand there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["docs/scale.md", "plugins/pullback-mpi/README.md"])
def test_the_program_runs(document, ranks, tmp_path):
    blocks = FENCE.findall((ROOT / document).read_text("utf-8"))
    (program,) = (block for block in blocks if "from pullback_mpi import" in block)
    path = tmp_path / "program.py"
    path.write_text(program + "print('gradient', comm.rank, np.abs(gradient).max() > 0)\n", encoding="utf-8")
    code, output = ranks(2, path)
    assert code == 0, output
    assert all(f"gradient {rank} True" in output for rank in (0, 1)), output
