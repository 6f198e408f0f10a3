"""What the Spark programs share: the session, tasks that run the binary, and the rows that come back.

Of Spark only what Spark Connect has is used: `spark.range(0, n, 1, n).mapInArrow(f, schema)` and `spark.sql`. An executor has the
environment of the worker daemon, so all that a task needs travels in the closure of `f`, the text of worker.py too.
"""

import json
import pathlib
import sys
import time

import worker

# Most tasks of one job; more captures are several jobs. Each task gets the names of all captures of its job: 1 MB, 6 ms.
MAX_TASKS = 20_000

SCHEMA = "capture string, host string, run_id string, error string, tries int, seconds double, waited double, manifest string"


def session(name):
    """The session that spark-submit, or SPARK_REMOTE, describes."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName(name).getOrCreate()
    spark.sql("SET spark.sql.ansi.enabled = true")
    return spark


def tasks(spark, items, function, limits):
    """Runs a function of worker.py over items, each a task of its own, and gives the rows back.

    `items` are tuples of arguments, the first two of which name the row: key and host.
    """
    source = pathlib.Path(worker.__file__).read_text()
    tries = limits["tries"]

    def run(batches):
        import pyarrow

        names = {"__name__": "worker"}
        exec(compile(source, "worker.py", "exec"), names)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                key, host, *arguments = some[number]
                lost = attempts_before()
                if lost >= tries:
                    # The worker was lost with this task each time: the next loss would end the job.
                    row = names["row_of"](key, host, tries=lost, error=f"the worker was lost {lost} times with it")
                else:
                    row = names[function](*arguments, key=key, host=host, **limits)
                columns = {name: [value] for name, value in row.items()}
                yield pyarrow.RecordBatch.from_pydict(columns, schema=SCHEMA_OF_ARROW())

    def attempts_before():
        try:
            from pyspark import TaskContext

            context = TaskContext.get()
            return context.attemptNumber() if context else 0
        except ImportError:
            return 0

    def SCHEMA_OF_ARROW():
        import pyarrow

        kinds = {"tries": pyarrow.int32(), "seconds": pyarrow.float64(), "waited": pyarrow.float64()}
        names = ["capture", "host", "run_id", "error", "tries", "seconds", "waited", "manifest"]
        return pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in names])

    for first in range(0, len(items), MAX_TASKS):
        some = items[first : first + MAX_TASKS]
        # Not toLocalIterator: it makes a job of each partition, and runs two of them at once, however many slots there are.
        frame = spark.range(0, len(some), 1, len(some)).mapInArrow(run, SCHEMA)
        for row in frame.collect():
            yield row.asDict()


def finish(rows, begun, what, manifest=None):
    """Writes the manifest, says how it went, and returns the rows with an error."""
    rows = list(rows)
    wall = time.monotonic() - begun
    failed = [row for row in rows if row["error"] is not None]
    if manifest:
        with open(manifest, "w", encoding="utf-8") as file:
            for row in sorted(rows, key=lambda row: row["capture"]):
                print(json.dumps(row, sort_keys=True), file=file)
    for row in failed[:20]:
        print(f"error: {row['capture']}: {row['error']}", file=sys.stderr)
    binary = sum(row["seconds"] for row in rows)
    print(f"{len(rows)} {what}, {len(failed)} with an error; {wall:.1f} s, of which the binary took {binary:.1f} s over all slots")
    return failed
