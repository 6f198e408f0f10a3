#!/usr/bin/env python3
"""Analyses captures that saw the same flows together, on Spark: `roce-analyze dataset join DS RAW --date DATE`, a task for each day.

    spark-submit --master spark://HOST:7077 spark/join.py DS RAW --date DATE [--date DATE]...

A day runs on one worker, by `--jobs` processes: its groups are found there. The results are in DS/joined, in the same layout.
"""

import argparse
import sys
import time

import jobs
import worker


def run(spark, given):
    """Rows of all days."""
    command = [given.binary, "dataset", "join", given.dataset, given.raw, "--jobs", str(given.jobs)]
    items = [(day, "", [*command, "--date", day]) for day in given.date]
    return jobs.tasks(spark, items, "command", {"tries": 2, "timeout": given.timeout, "slots": None})


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=worker.place_of)
    parser.add_argument("raw", type=worker.place_of)
    parser.add_argument("--date", action="append", required=True, help="a day; can be repeated")
    parser.add_argument("--binary", type=worker.program_of, default="roce-analyze", help="the program, as the workers find it")
    parser.add_argument("--jobs", type=int, default=1, help="processes of a worker for the groups of its day")
    parser.add_argument("--timeout", type=float, default=36000, help="seconds for one day")
    given = parser.parse_args()
    spark = jobs.session("roce-analyze join")
    begun = time.monotonic()
    failed = jobs.finish(run(spark, given), begun, "days")
    spark.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
