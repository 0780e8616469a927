"""``rank_output.py FOLDER PROGRAM [ARGUMENT ...]`` runs a program whose output goes to a file of its rank: that of two
ranks in one stream can be mixed within a line."""

import os
import runpy
import sys
from pathlib import Path

RANK = next(os.environ[name] for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK") if name in os.environ)

folder, *sys.argv = sys.argv[1:]
output = os.open(Path(folder) / f"{RANK}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(output, 1)
os.dup2(output, 2)
sys.path[0] = str(Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
