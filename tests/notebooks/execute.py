#!/usr/bin/python3
"""Runs the notebooks from first cell to last, as a reader would.

  execute.py --binaries build [--store] [NOTEBOOK...]

A cell that fails fails the run. Outputs are compared with the stored ones and a difference is told; --store writes them, freed of
everything that belongs to this machine or this hour. Exit code 77 (skipped, to ctest) where the Debian packages
python3-nbformat, python3-nbclient, python3-ipykernel and python3-matplotlib are missing.
"""
import argparse
import importlib
import os
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["nbformat", "nbclient", "ipykernel", "matplotlib"]
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
OF_THIS_MACHINE = re.compile(r"/(home|root|tmp|work|usr|opt|var)/|0x[0-9a-f]{8,}")


def missing():
    absent = []
    for package in PACKAGES:
        try:
            importlib.import_module(package)
        except ImportError:
            absent.append("python3-" + package)
    return absent


def texts(notebook):
    """What a reader sees as text: streams and plain results; pictures by their kind alone."""
    seen = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                seen.append(output.text)
            elif "data" in output:
                picture = [kind for kind in output.data if kind.startswith("image/")]
                seen.append(str(picture) if picture else output.data.get("text/plain", ""))
    return seen


def clean(notebook):
    """Kernel by its general name, no times, no ids that change."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}
    count = 0
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        joined = []  # what was printed in one go may come in pieces
        for output in cell.outputs:
            if joined and output.output_type == "stream" == joined[-1].output_type and output.name == joined[-1].name:
                joined[-1].text += output.text
            else:
                joined.append(output)
        cell.outputs = joined
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            if "metadata" in output:
                output.metadata = {}
            if "data" in output and any(kind.startswith("image/") for kind in output.data):
                output.data.pop("text/plain", None)  # "<Figure ...>"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", default=ROOT / "build", type=pathlib.Path, help="folder of fabricast")
    parser.add_argument("--store", action="store_true", help="write the outputs into the notebooks")
    parser.add_argument("notebooks", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if absent := missing():
        print(f"skipped: {', '.join(absent)} not installed for {sys.executable}; apt-get install {' '.join(absent)}")
        return 77
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    binaries = arguments.binaries.resolve()
    files = arguments.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    status = 0
    with tempfile.TemporaryDirectory() as home:  # nobody's settings, no other kernels
        for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
            os.environ[name] = home
        os.environ.update(FABRICAST=str(binaries / "fabricast"), FABRICAST_VALIDATE=str(binaries / "fabricast-validate"),
                          PYTHONDONTWRITEBYTECODE="1", PYDEVD_DISABLE_FILE_VALIDATION="1", JUPYTER_PLATFORM_DIRS="0")
        for file in files:
            notebook = nbformat.read(file, as_version=4)
            before = texts(notebook)
            began = time.monotonic()
            try:
                NotebookClient(notebook, timeout=120, kernel_name="python3",
                               resources={"metadata": {"path": str(ROOT / "notebooks")}}).execute()
            except CellExecutionError as error:
                print(f"{file.name}: FAILED\n{COLOURS.sub('', str(error))}")
                status = 1
                continue
            clean(notebook)
            found = [text for text in texts(notebook) if OF_THIS_MACHINE.search(text)]
            if found:
                print(f"{file.name}: FAILED: an output names this machine: {found[0][:200]}")
                status = 1
            same = texts(notebook) == before
            print(f"{file.name}: {time.monotonic() - began:.1f} s" +
                  ("" if same else "; outputs differ from the stored ones" + (", stored" if arguments.store else
                   ": execute.py --store writes them")))
            if arguments.store:
                nbformat.validate(notebook)
                nbformat.write(notebook, file)
    return status


sys.exit(main())
