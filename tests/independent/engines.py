#!/usr/bin/env python3
"""Reads the datasets of many runs with the engines that sites have: Spark, DuckDB, pandas, polars, Delta Lake, Iceberg.

    engines.py FOLDER      FOLDER holds NAME/ (a dataset) and NAME.json (the same run's document)

Each engine reads each table of all datasets as one, and makes for each run: the number of rows, and of each column the number of values
and their sum (of texts: of their lengths). These have to be those of the run's document for all tables that it holds; the sums of `timeline`,
`hop_timeline` and `events`, which it does not hold, have to be its flows', hops' and totals'. SQL names columns without quotes. Delta Lake and Iceberg get
the tables by two appends each, and give them back.
"""

import decimal
import glob
import json
import math
import pathlib
import sys
import tempfile
import time

import deltalake
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pyspark.sql
from pyiceberg.catalog.sql import SqlCatalog

TABLES = ["flows", "timeline", "events", "episodes", "findings", "steps", "taps", "vantages", "hops", "hop_timeline", "ends", "waits", "collectives", "credits", "collective_waits", "mrc_connections", "mrc_paths", "uet_traffic", "hops_inband", "samples", "run"]

# Tables that the document has row for row.
WHOLE = ["flows", "episodes", "findings", "steps", "taps", "vantages", "hops", "waits", "collectives", "credits", "collective_waits"]

# Counts and bytes: over a flow's rows in the timeline they add up to the flow.
ADDITIVE = (
    "packets wire_bytes payload_bytes data_packets not_ect ect0 ect1 ce retransmitted_packets retransmitted_bytes missing late naks rnr_naks "
    "acks messages"
).split()

# Kinds of events: a count of the document's totals that the sum of `value` is, and one that the number of events is.
VALUES = {"gap": "missing", "retransmission_run": "retransmitted_packets", "cnp": "cnp", "response_gap": "response_missing"}
NUMBERS = {"late": "late", "nak": "naks", "rnr_nak": "rnr_naks"}

# Keys of the document's `run` and `totals` that each row of `run` repeats.
OF_RUN = ["version", "elapsed_ns"]
OF_TOTALS = ["frames", "frames_lost", "copies", "roce_packets", "undecodable", "evicted"]

INTEGER, FLOAT, BOOL, TEXT, TIME = "integer", "float", "bool", "text", "time"


def kinds(folder, name):
    """The kind of each column of a table, as Parquet has it."""
    path = sorted(glob.glob(f"{folder}/*/{name}/*.parquet"))[0]
    found = {}
    for field in pyarrow.parquet.read_schema(path):
        if field.type in (pyarrow.int32(), pyarrow.int64()):
            found[field.name] = INTEGER
        elif pyarrow.types.is_timestamp(field.type):
            assert (field.type.unit, field.type.tz) == ("us", "UTC"), f"{name}.{field.name} is {field.type}"
            found[field.name] = TIME
        elif pyarrow.types.is_floating(field.type):
            found[field.name] = FLOAT
        elif pyarrow.types.is_boolean(field.type):
            found[field.name] = BOOL
        else:
            # pyarrow cannot compare texts of the type `string_view`.
            assert field.type == pyarrow.string(), f"{name}.{field.name} is {field.type}"
            found[field.name] = TEXT
    return found


def number(value):
    """A sum in one form; nothing to add is 0."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return 0
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**52:
        return int(value)
    return value


# Columns of findings that are lists of names in the documents.
NAMES = ("explains", "explained_by", "victims", "aggressors")


def stated(rows):
    """What the documents rows say of each of their columns: the number of values, and their sum."""
    found = {}
    for row in rows:
        for column, value in row.items():
            # Names are separated by spaces in the tables.
            value = " ".join(value) if column in NAMES and isinstance(value, list) else value
            if value is None or isinstance(value, list):
                continue
            count, total = found.get(column, (0, 0))
            if isinstance(value, str):
                is_number = column.endswith("_time") or column in ("time", "started")
                is_id = column.endswith("flow_id")
                value = int(value) if is_number else int(value, 16) if is_id else len(value)
            elif isinstance(value, dict):
                value = 0
            found[column] = (count + 1, total + value)
    return found


def expected(document):
    """By table: the number of rows, and (number of values, sum) of columns, as far as the document says them."""
    tables = {name: (len(document[name]), stated(document[name])) for name in WHOLE}
    # Without such packets a document has none of these tables.
    for name in ("mrc_connections", "mrc_paths", "uet_traffic", "hops_inband"):
        tables[name] = (len(document.get(name, [])), stated(document.get(name, [])))
    run, totals = document["run"], document["totals"]
    inputs = [
        {"input_frames" if key == "frames" else key: value for key, value in row.items() if key != "warnings"} for row in run["inputs"]
    ]
    for row in inputs:
        row.update({key: run[key] for key in OF_RUN} | {key: totals[key] for key in OF_TOTALS})
    tables["run"] = (len(inputs), stated(inputs))
    flows = document["flows"]
    sums = {column: (None, sum(row[column] for row in flows)) for column in ADDITIVE}
    tables["timeline"] = (None, sums)
    # What its bins add up to is the hop.
    hops = document["hops"]
    sums = {column: (None, sum(row[whole] for row in hops)) for column, whole in (("arrived", "matched"), ("lost", "lost"), ("marked", "marked"))}
    tables["hop_timeline"] = (None, sums)
    # Documents have the connections that failed, the table all.
    tables["ends"] = (None, {})
    tables["events"] = (None, {})
    tables["samples"] = (None, {})
    return tables


def sql(name, columns, sum_of, micros):
    """The question to an SQL engine about a table. `sum_of` is for integers, `micros` for times."""
    terms = {
        INTEGER: sum_of,
        FLOAT: "sum({})",
        BOOL: "sum(CASE WHEN {} THEN 1 ELSE 0 END)",
        TEXT: "sum(length({}))",
        TIME: f"sum({micros})",
    }
    asked = [f"count({column}), {terms[kind].format(column)}" for column, kind in columns.items()]
    return f"SELECT run_id, count(*), {', '.join(asked)} FROM {name} GROUP BY run_id"


def answers(columns, rows):
    """The answer of an SQL engine, by run."""
    found = {}
    for run, count, *values in rows:
        pairs = zip(values[::2], values[1::2])
        found[run] = (count, {column: (present, number(total)) for column, (present, total) in zip(columns, pairs, strict=True)})
    return found


class DuckDb:
    """DuckDB, by SQL."""

    name = f"DuckDB {duckdb.__version__}"

    def read(self, folder, name, columns):
        """The sums of a table."""
        duckdb.sql(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{folder}/*/{name}/*.parquet')")
        rows = duckdb.sql(sql(name, columns, "sum({})", "epoch_us({})")).fetchall()
        if "time" in columns:
            # What it cannot do with nanoseconds.
            duckdb.sql(f"SELECT count(DISTINCT date_trunc('second', time)) FROM {name}").fetchall()
        return answers(columns, rows)


class Spark:
    """Spark itself, in this process's own Java machine, by SQL in ANSI mode."""

    name = f"Spark {pyspark.__version__}"

    def __init__(self, scratch):
        builder = pyspark.sql.SparkSession.builder.master("local[2]").appName("roce-analyze")
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.ansi.enabled": "true",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def read(self, folder, name, columns):
        """The sums of a table."""
        frame = self.session.read.parquet(*sorted(glob.glob(f"{folder}/*/{name}")))
        unsigned = [field for field in frame.schema.fields if "decimal" in field.dataType.simpleString()]
        assert not unsigned, f"{name}: {unsigned}"
        frame.createOrReplaceTempView(name)
        rows = self.session.sql(sql(name, columns, "sum(CAST({} AS DECIMAL(38)))", "CAST(unix_micros({}) AS DECIMAL(38))"))
        return answers(columns, rows.collect())


class Polars:
    """polars of PyPI, which is not the version that wrote."""

    name = f"polars {polars.__version__}"

    def read(self, folder, name, columns):
        """The sums of a table."""
        frame = polars.read_parquet(f"{folder}/*/{name}/*.parquet")
        found = {}
        for (run,), rows in frame.group_by("run_id"):
            sums = {}
            for column, kind in columns.items():
                values = rows[column]
                if kind == TEXT:
                    values = values.str.len_chars()
                if kind != FLOAT:
                    values = values.cast(polars.Int64).cast(polars.Int128)
                sums[column] = (rows[column].count(), number(values.sum()))
            found[run] = (rows.height, sums)
        return found


class Pandas:
    """pandas, over pyarrow."""

    name = f"pandas {pandas.__version__}"

    def read(self, folder, name, columns):
        """The sums of a table."""
        paths = sorted(glob.glob(f"{folder}/*/{name}/*.parquet"))
        frame = pandas.concat([pandas.read_parquet(path, dtype_backend="numpy_nullable") for path in paths])
        found = {}
        for run, rows in frame.groupby("run_id"):
            sums = {}
            for column, kind in columns.items():
                values = rows[column].dropna()
                if kind == TEXT:
                    total = sum(map(len, values))
                elif kind == TIME:
                    total = sum(map(int, values.dt.tz_localize(None).astype("datetime64[us]").astype("int64")))
                elif kind == FLOAT:
                    total = math.fsum(values)
                else:
                    total = sum(map(int, values))
                sums[column] = (len(values), number(total))
            found[run] = (len(rows), sums)
        return found


class Delta:
    """Delta Lake, which takes each table by two appends."""

    name = f"Delta Lake {deltalake.__version__}"

    def __init__(self, scratch):
        self.scratch = scratch

    def read(self, folder, name, columns):
        """The sums of a table, out of Delta Lake."""
        place = f"{self.scratch}/delta/{name}"
        for half in halves(folder, name):
            deltalake.write_deltalake(place, half, mode="append")
        return of_arrow(pyarrow.table(deltalake.DeltaTable(place).to_pyarrow_table()), columns)


class Iceberg:
    """Iceberg with a catalog in SQLite, which takes each table by two appends."""

    name = "Iceberg"

    def __init__(self, scratch):
        place = pathlib.Path(scratch, "iceberg")
        place.mkdir()
        self.catalog = SqlCatalog("runs", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")
        self.catalog.create_namespace("roce")

    def read(self, folder, name, columns):
        """The sums of a table, out of Iceberg."""
        first, second = halves(folder, name)
        table = self.catalog.create_table(f"roce.{name}", schema=first.schema)
        table.append(first)
        table.append(second)
        return of_arrow(table.scan().to_arrow(), columns)


def halves(folder, name):
    """A table of all datasets in two parts."""
    tables = [pyarrow.parquet.read_table(path) for path in sorted(glob.glob(f"{folder}/*/{name}/*.parquet"))]
    middle = len(tables) // 2
    return pyarrow.concat_tables(tables[:middle]), pyarrow.concat_tables(tables[middle:])


def of_arrow(table, columns):
    """The sums of an Arrow table, by DuckDB."""
    duckdb.register("arrow_rows", table)
    rows = duckdb.sql(sql("arrow_rows", columns, "sum({})", "epoch_us({})")).fetchall()
    duckdb.unregister("arrow_rows")
    return answers(columns, rows)


def near(one, other):
    """Sums of integers are equal; those of other numbers but for the order of adding."""
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


def differences(name, documents, columns, found):
    """What an engine's sums of a table have that the documents have not."""
    wrong = []
    for run, document in documents.items():
        rows, sums = expected(document)[name]
        got_rows, got = found.get(run, (0, {}))
        if rows is not None and got_rows != rows:
            wrong.append(f"{name} of {document['run']['capture']}: {got_rows} rows, expected {rows}")
        for column, kind in columns.items():
            # Of a time the document has the nanoseconds.
            said = sums.get(column.removesuffix("_ns")) if columns.get(column.removesuffix("_ns")) == TIME else sums.get(column)
            if kind == TIME or column in ("run_id", "host", "capture", "evidence", "options"):
                continue
            if name in WHOLE and said is None:
                said = (0, 0)
            if said is None:
                continue
            present, total = got.get(column, (0, 0))
            if (said[0] is not None and present != said[0]) or not near(total, number(said[1])):
                wrong.append(f"{name}.{column} of {document['run']['capture']}: {(present, total)}, expected {said}")
    unknown = found.keys() - documents.keys()
    if unknown:
        wrong.append(f"{name}: rows of runs that no document names: {unknown}")
    return wrong


def same(name, columns, one, other):
    """What two engines' sums of a table differ in."""
    wrong = []
    for run in one.keys() | other.keys():
        (rows, sums), (other_rows, others) = one.get(run, (0, {})), other.get(run, (0, {}))
        if rows != other_rows:
            wrong.append(f"{name}: {other_rows} rows, the first engine has {rows}")
        for column in columns:
            (count, total), (other_count, other_total) = sums.get(column, (0, 0)), others.get(column, (0, 0))
            if count != other_count or not near(total, other_total):
                wrong.append(f"{name}.{column}: {(other_count, other_total)}, the first engine has {(count, total)}")
    return wrong


def of_events(folder, documents):
    """Events by kind against the documents' totals."""
    duckdb.sql(f"CREATE OR REPLACE VIEW events AS SELECT * FROM read_parquet('{folder}/*/events/*.parquet')")
    found = {
        (run, kind): (count, total or 0)
        for run, kind, count, total in duckdb.sql("SELECT run_id, kind, count(*), sum(value) FROM events GROUP BY run_id, kind").fetchall()
    }
    wrong = []
    for run, document in documents.items():
        for kind, key in [*VALUES.items(), *NUMBERS.items()]:
            got = found.get((run, kind), (0, 0))[kind in VALUES]
            if got != document["totals"][key]:
                wrong.append(f"events {kind} of {document['run']['capture']}: {got}, expected {document['totals'][key]}")
    return wrong


def filtered(folder, documents):
    """Rows of flows that pyarrow finds by their source, against the documents' flows."""
    wrong = []
    for path in sorted(glob.glob(f"{folder}/*/flows/*.parquet")):
        run = pyarrow.parquet.read_table(path, columns=["run_id"])["run_id"]
        if len(run) == 0:
            continue
        flows = documents[run[0].as_py()]["flows"]
        source = flows[0]["source"]
        got = pyarrow.parquet.read_table(path, filters=[("source", "=", source)]).num_rows
        expected = sum(flow["source"] == source for flow in flows)
        if got != expected:
            wrong.append(f"{path}: {got} flows of {source}, expected {expected}")
    return wrong


def checksums(folder):
    """Pages whose checksum pyarrow does not find, or does not verify: of each table a copy with another last byte of its first column."""
    wrong = []
    for path in sorted(glob.glob(f"{folder}/*/*/*.parquet")):
        pyarrow.parquet.read_table(path, page_checksum_verification=True)
        metadata = pyarrow.parquet.read_metadata(path)
        if not metadata.num_row_groups:
            continue
        column = metadata.row_group(0).column(0)
        first = column.dictionary_page_offset or column.data_page_offset
        damaged = bytearray(pathlib.Path(path).read_bytes())
        damaged[first + column.total_compressed_size - 1] ^= 1
        try:
            pyarrow.parquet.read_table(pyarrow.BufferReader(bytes(damaged)), page_checksum_verification=True)
        except OSError as error:
            if "CRC" in str(error):
                continue
        wrong.append(f"{path}: a damaged page is not found by its checksum")
    return wrong


def main():
    """Has every engine read everything in the folder."""
    (folder,) = sys.argv[1:]
    folder = str(pathlib.Path(folder).resolve())
    documents = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("*.json"))]
    documents = {document["run"]["run_id"]: document for document in documents}
    columns = {name: kinds(folder, name) for name in TABLES}
    failed = of_events(folder, documents) + filtered(folder, documents) + checksums(folder)
    with tempfile.TemporaryDirectory() as scratch:
        first = {}
        for engine in (DuckDb(), Polars(), Pandas(), Delta(scratch), Iceberg(scratch), Spark(scratch)):
            begun, wrong = time.monotonic(), []
            for name in TABLES:
                try:
                    found = engine.read(folder, name, columns[name])
                except Exception as error:  # Whatever an engine fails with: the others go on.
                    wrong.append(f"{name}: {type(error).__name__}: {str(error)[:500]}")
                    continue
                wrong += differences(name, documents, columns[name], found)
                wrong += same(name, columns[name], first.setdefault(name, found), found)
            print(f"   {engine.name}: {len(TABLES)} tables, {len(wrong)} differences, {time.monotonic() - begun:.1f} s")
            for line in wrong[:10]:
                print(f"      {line}")
            failed += wrong
    if not documents or failed:
        for line in failed[:10]:
            print(f"   {line}")
        sys.exit(f"{len(failed)} differences over {len(documents)} datasets")
    print(f"   {len(documents)} datasets, in every engine the rows and sums of their documents")


if __name__ == "__main__":
    main()
