"""Examples of docstrings and of the guide, and the notebooks."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ["zhat", "zhat._anomaly", "zhat._contrast", "zhat._density", "zhat._imputer", "zhat.log_z", "zhat.torch"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    if name == "zhat.torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failed == 0


def test_examples_of_the_guide(tmp_path, monkeypatch):
    """Blocks of Python in docs/python.md run one after the other; those of PyTorch where it is installed."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    assert len(blocks) > 5
    names = {}
    for block in blocks:
        if "torch" in block:
            pytest.importorskip("torch", reason="PyTorch is not installed: the rest of the guide is not run")
        exec(compile(block, "docs/python.md", "exec"), names)  # noqa: S102


@pytest.mark.parametrize("name", ["table", "energy_model"])
def test_notebooks(name):
    nbclient = pytest.importorskip("nbclient", reason="Jupyter is not installed: notebooks are not run")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    if name == "energy_model":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    notebook = nbformat.read(ROOT / "docs" / "notebooks" / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
