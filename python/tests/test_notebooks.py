from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"


# The client of Jupyter's kernels, not ours, leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_the_notebook_runs(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    content = nbformat.read(notebook, as_version=4)
    NotebookClient(content, timeout=60, kernel_name="python3").execute(cwd=str(EXAMPLES))


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_the_notebook_is_committed_without_outputs(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    assert all(not cell.get("outputs") for cell in content.cells)
