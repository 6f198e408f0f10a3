#!/usr/bin/env python3
"""Executes docs/notebook.ipynb and docs/examples/congested.py, and compares what they print with what the documents have.

    check_programs.py PROGRAM RESULTS [--write]

The notebook finds roce-analyze on the path: the folder of PROGRAM is put first. Of a picture only its presence is compared. RESULTS are those of
docs/dataset.md (check_answers.py makes them). `--write` stores the outputs in the notebook instead.
"""

import os
import pathlib
import re
import subprocess
import sys

import nbclient
import nbformat

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "notebook.ipynb"
EXAMPLE = "docs/examples/congested.py"


def outputs(cell):
    """What a cell shows: its text, and `picture` for each picture."""
    shown = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if "image/png" in data:
            shown.append("picture")
        elif "text" in output:
            shown.append("".join(output["text"]))
        elif "text/plain" in data:
            shown.append("".join(data["text/plain"]))
    return shown


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    # Two runs give the same bytes.
    os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    stored = nbformat.read(PAGE, as_version=4)
    executed = nbformat.read(PAGE, as_version=4)
    nbclient.NotebookClient(executed, timeout=120, kernel_name="python3").execute()
    if "--write" in sys.argv:
        for cell in executed.cells:
            cell.get("metadata", {}).pop("execution", None)
            for output in cell.get("outputs", []):
                output.get("metadata", {}).clear()
        executed.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        nbformat.write(executed, PAGE)
        return
    code = [(old, new) for old, new in zip(stored.cells, executed.cells) if old.cell_type == "code"]
    wrong = [f"{new.source}\nprints:\n{outputs(new)}\nthe page has:\n{outputs(old)}" for old, new in code if outputs(old) != outputs(new)]
    pictures = sum(outputs(new).count("picture") for _, new in code)
    if pictures == 0:
        wrong.append("no cell draws a picture")
    command = rf"\$ python3 {re.escape(EXAMPLE)} (\S+)\n(.*?)```"
    block = re.search(command, (DOCS / "dataset.md").read_text(), re.DOTALL)
    prints = [sys.executable, str(DOCS.parent / EXAMPLE), str(pathlib.Path(sys.argv[2]) / block[1])]
    printed = subprocess.run(prints, capture_output=True, text=True, check=True).stdout
    if printed != block[2]:
        wrong.append(f"{EXAMPLE} prints:\n{printed}\nthe page has:\n{block[2]}")
    print(f"   notebook: {len(code)} cells, {pictures} pictures, {len(wrong)} wrong")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
