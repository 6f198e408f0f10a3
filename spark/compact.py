#!/usr/bin/env python3
"""Brings the runs of whole days together, on a worker of Spark: `roce-analyze dataset compact DS --to DATE`.

    spark-submit --master spark://HOST:7077 spark/compact.py DS --to DATE

It is one task: a compaction locks the dataset, and moves only what the captures became, 0.1 to 1 % of their bytes.
"""

import argparse
import sys
import time

import jobs
import worker


def run(spark, given):
    """The row of the compaction."""
    command = [given.binary, "dataset", "compact", given.dataset, "--to", given.to]
    # A compaction that was killed is made good by the next one.
    return jobs.tasks(spark, [("compaction", "", command)], "command", {"tries": 3, "timeout": given.timeout, "slots": 1})


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=worker.place_of)
    parser.add_argument("--to", required=True, metavar="DATE", help="compact the days up to this one")
    parser.add_argument("--binary", type=worker.program_of, default="roce-analyze", help="the program, as the workers find it")
    parser.add_argument("--timeout", type=float, default=36000, help="seconds for all days")
    given = parser.parse_args()
    spark = jobs.session("roce-analyze compact")
    begun = time.monotonic()
    failed = jobs.finish(run(spark, given), begun, "compaction")
    spark.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
