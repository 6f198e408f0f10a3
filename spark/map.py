#!/usr/bin/env python3
"""Analyses all captures below RAW into the dataset DS, on Spark.

    spark-submit --master spark://HOST:7077 spark/map.py RAW DS [--binary PATH] [--manifest FILE]

RAW and DS are paths that all workers see, or addresses in an object store where the binary reads those. Each capture is a task, the
largest first. A capture that fails is a row with `error`; the exit code is 1 then. A second run writes files of the same names. Paths may
be relative to the folder in which this runs.
"""

import argparse
import sys
import time

import jobs
import worker


def run(spark, raw, dataset, given):
    """Rows of all captures."""
    keys = worker.listed(given.captures) if given.captures else worker.find(raw)
    options, inventory = given.options.split(), worker.hosts(given.inventory)
    if not any(option.startswith("--threads") for option in options):
        # A slot is one core. Of one thread the rows are in the same order each time: a second run has the same bytes.
        options += ["--threads", "1"]
    limits = {"tries": given.tries, "timeout": given.timeout, "slots": given.slots, "options": options}
    again = []
    for left in (keys, again):
        # analyse(binary, raw, dataset, key, host, options)
        items = [(key, worker.host_of(key, inventory), given.binary, raw, dataset) for key in left]
        for row in jobs.tasks(spark, items, "analyse", limits):
            if left is keys and not worker.is_there(dataset, row):
                again.append(row["capture"])
            else:
                yield row


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw", type=worker.place_of)
    parser.add_argument("dataset", type=worker.place_of)
    parser.add_argument("--manifest", help="write the rows of all captures to this file, a JSON object on each line")
    worker.options_of(parser)
    given = parser.parse_args()
    spark = jobs.session("roce-analyze map")
    begun = time.monotonic()
    failed = jobs.finish(run(spark, given.raw, given.dataset, given), begun, "captures", given.manifest)
    spark.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
