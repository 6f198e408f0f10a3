#!/usr/bin/env python3
"""Has DuckDB answer the questions of docs/dataset.md, by `roce-analyze query`, and compares the page's answers with its own.

    check_answers.py PROGRAM SCRATCH [--write]

PROGRAM is roce-analyze; the page's first `console` block of the section says how the results are made, and is done here in SCRATCH. Below
each `sql` block is a `text` block with the answer. `--write` puts the answers into the page instead.

Some answers are held against what others know: tshark's counts (tests/data/golden), and the counters and truth of the simulator.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/dataset.md"
SECTION = "## Twenty answers"
LEAST = 20

# A question and its answer.
BLOCK = re.compile(r"```sql\n(?P<sql>.*?)```\n\n```text\n(?P<answer>.*?)```\n", re.DOTALL)


def run(program, folder, *arguments):
    """Standard output of a run of the program, which has to succeed."""
    # Two runs give the same bytes.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "NO_COLOR": "1"}
    ran = subprocess.run([program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit code {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def make_results(program, scratch, text):
    """The results that the section's first block makes; captures of the project are found where it is."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    (scratch / "captures").symlink_to(ROOT / "captures")
    block = re.search(r"```console\n(.*?)```", text, re.DOTALL).group(1)
    for line in block.splitlines():
        words = line.removeprefix("$ ").split()
        if words[:1] != ["roce-analyze"]:
            sys.exit(f"{PAGE.name}: a line of the first block is no command of this program: {line}")
        arguments = words[1:]
        if arguments[0] == "simulate":
            arguments += ["--truth", "truth.json"]
        run(program, scratch, *arguments)


def rows(program, scratch, sql):
    """The rows of a question, as dictionaries."""
    out = run(program, scratch, "query", "runs", sql, "--format", "jsonl", "--duckdb", sys.executable)
    return [json.loads(line) for line in out.splitlines()]


def golden(name):
    """Counts of a capture by tshark (tests/data/golden)."""
    lines = (ROOT / "tests/data/golden" / f"{name}.txt").read_text().splitlines()
    pairs = [line.split() for line in lines if not line.startswith("#")]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def check_by_others(program, scratch):
    """Compares sums with what others counted: the number of comparisons, and what is wrong."""
    found, wrong = 0, []

    def same(what, ours, theirs):
        nonlocal found
        found += 1
        if ours != theirs:
            wrong.append(f"{what}: {ours}, and others count {theirs}")

    sums = "sum(data_packets) AS data_packets, sum(acks) AS acks, sum(retransmitted_packets + late) AS again, sum(missing) AS skipped"
    sql = f"SELECT capture, {sums} FROM flows WHERE counted AND capture LIKE 'captures/%' GROUP BY capture"
    for row in rows(program, scratch, sql):
        counts = golden(pathlib.PurePath(row["capture"]).stem)
        same(f"{row['capture']}: data packets", int(row["data_packets"]), counts["data_packets"])
        same(f"{row['capture']}: acknowledgements", int(row["acks"]), counts["acks"])
        same(f"{row['capture']}: sent again or late", int(row["again"]), counts["resends"] + counts["filled"])
        same(f"{row['capture']}: PSNs skipped", int(row["skipped"]), counts["skipped"])
    # The switch that marks, the receiver that counts marks, and the capture at the receiver see the same packets: there is one queue.
    marks = rows(
        program,
        scratch,
        "SELECT counter, sum(change) AS rose FROM samples WHERE counter IN ('switch_queue_ecn_marked_packets', "
        "'port_ecn_marked_packets_received') GROUP BY counter ORDER BY counter",
    )
    captured = rows(program, scratch, "SELECT sum(ce) AS ce FROM flows WHERE counted")[0]["ce"]
    same("counters of marks", [row["counter"] for row in marks], ["port_ecn_marked_packets_received", "switch_queue_ecn_marked_packets"])
    for row in marks:
        same(row["counter"], int(row["rose"]), int(captured))
    return found, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    program, scratch = arguments.program.resolve(), arguments.scratch.resolve()
    page = PAGE.read_text()
    before, heading, section = page.partition(SECTION)
    section, *after = re.split(r"^(?=## )", section, maxsplit=1, flags=re.MULTILINE)
    make_results(program, scratch, section)
    wrong, answered = [], 0

    def answer(match):
        nonlocal answered
        answered += 1
        sql = match["sql"]
        text = run(program, scratch, "query", "runs", sql, "--duckdb", sys.executable)
        if text.strip() == "no rows" or text != match["answer"]:
            wrong.append(f"{sql}the page has:\n{match['answer']}and DuckDB answers:\n{text}")
        return f"```sql\n{sql}```\n\n```text\n{text}```\n"

    section = BLOCK.sub(answer, section)
    if arguments.write:
        PAGE.write_text(before + heading + section + "".join(after))
        print(f"{PAGE.name}: {answered} answers written")
        return
    blocks = section.count("```sql")
    if blocks != answered or answered < LEAST:
        wrong.append(f"{PAGE.name}: {blocks} questions, {answered} with an answer, and {LEAST} are the least")
    compared, others = check_by_others(program, scratch)
    wrong += others
    print(f"   answers: {answered} questions and {compared} comparisons with others, {len(wrong)} wrong")
    if compared < 10:
        wrong.append(f"{compared} comparisons with others: some are missing")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
