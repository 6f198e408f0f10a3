#!/usr/bin/env python3
"""Answers a question about the dataset DS, on Spark: the text is that of `roce-analyze query DS NAME --print --engine spark`.

    spark-submit --master spark://HOST:7077 spark/sql.py DS NAME|FILE.sql [--output FILE.csv]

The answer is printed, or written as CSV. DS is a path that all workers see, or an address of an object store that Spark reads.
"""

import argparse
import csv
import re
import subprocess
import sys

import jobs
import worker


def text_of(given, name):
    """Statements for Spark, the last of which is the question."""
    command = [given.binary, "query", given.dataset, name, "--print", "--engine", "spark"]
    for option in ("inventory", "from", "to"):
        if getattr(given, option):
            command += [f"--{option}", getattr(given, option)]
    try:
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except subprocess.CalledProcessError as error:
        # It has said why.
        sys.exit(error.returncode)
    except OSError as error:
        sys.exit(f"error: {given.binary}: {error.strerror}\nhint: --binary PATH names the program on this machine, which writes the SQL")
    return [statement for statement in printed.split(";\n") if statement.strip()]


def prepare(spark, statements):
    """Makes the views. A table that nobody wrote to an object store is an empty one."""
    for statement in statements:
        try:
            spark.sql(statement)
        except Exception as error:
            head = re.match(r"(CREATE OR REPLACE TEMP VIEW \w+) \((.*)\)\s*USING parquet", statement, re.DOTALL)
            if not head or "PATH_NOT_FOUND" not in str(error):
                raise
            columns = [column.split(" ", 1) for column in head.group(2).split(", ")]
            empty = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns)
            spark.sql(f"{head.group(1)} AS SELECT {empty} WHERE false")


def ask(spark, given, name):
    """The answer to a question, a data frame."""
    return answer(spark, text_of(given, name))


def answer(spark, statements):
    """The answer of the last statement, a data frame."""
    *views, question = statements
    prepare(spark, views)
    return spark.sql(question)


def parse(arguments=None):
    """Options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=worker.place_of)
    parser.add_argument("question")
    parser.add_argument("--binary", default="roce-analyze", help="the program on this machine")
    parser.add_argument("--inventory", help="fabric.toml with racks, jobs and ranks of the hosts, as `query --inventory` reads it")
    parser.add_argument("--from", metavar="DATE")
    parser.add_argument("--to", metavar="DATE")
    parser.add_argument("--output", help="write the answer as CSV")
    return parser.parse_args(arguments)


def main():
    """The command."""
    given = parse()
    # Before the session, which takes its time to begin.
    statements = text_of(given, given.question)
    spark = jobs.session("roce-analyze sql")
    frame = answer(spark, statements)
    with open(given.output, "w", newline="") if given.output else sys.stdout as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(frame.columns)
        for row in frame.toLocalIterator():
            rows.writerow(["" if value is None else value for value in row])
    spark.stop()


if __name__ == "__main__":
    main()
