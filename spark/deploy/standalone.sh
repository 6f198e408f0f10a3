#!/bin/sh
# A standalone Spark cluster over ssh: a master here, a worker on each host of a file, and their end.
#
#   standalone.sh start HOSTS     HOSTS has a name on each line; needs Java 17 and PySpark at the same place on all of them
#   standalone.sh stop HOSTS
#
# SPARK_HOME is the folder of Spark, MASTER the name of this host as the others reach it, CORES and MEMORY what each worker offers.
set -eu

: "${SPARK_HOME:?set SPARK_HOME to the folder of Spark}"
: "${MASTER:=$(hostname -f)}"
: "${CORES:=16}"
: "${MEMORY:=16g}"
FOLDER=${FOLDER:-/var/tmp/roce-analyze-spark}

# Runs a command on a host with its arguments quoted for the shell there.
there() {
    host=$1
    shift
    line=
    for word in "$@"; do
        line="$line '$(printf %s "$word" | sed "s/'/'\\\\''/g")'"
    done
    ssh -n -o BatchMode=yes -- "$host" "$line"
}

# A script for each host: starts a daemon that outlives the connection and notes its process, or ends the one that is noted.
START='mkdir -p "$1" && cd "$1" && { SPARK_HOME=$2 setsid "$2/bin/spark-class" org.apache.spark.deploy.worker.Worker --cores "$3" --memory "$4" --work-dir "$1/work" "$5" > worker.log 2>&1 < /dev/null & echo $! > worker.pid; }'
STOP='test -f "$1/worker.pid" && kill "$(cat "$1/worker.pid")" && rm "$1/worker.pid"'

case "${1:-} ${2:+hosts}" in
    "start hosts")
        mkdir -p "$FOLDER"
        setsid "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master --host "$MASTER" --port 7077 \
            > "$FOLDER/master.log" 2>&1 < /dev/null &
        echo $! > "$FOLDER/master.pid"
        while read -r name; do
            [ -z "$name" ] || there "$name" sh -c "$START" sh "$FOLDER" "$SPARK_HOME" "$CORES" "$MEMORY" "spark://$MASTER:7077"
        done < "$2"
        echo "spark://$MASTER:7077"
        ;;
    "stop hosts")
        while read -r name; do
            [ -z "$name" ] || there "$name" sh -c "$STOP" sh "$FOLDER" || echo "$name: no worker" >&2
        done < "$2"
        kill "$(cat "$FOLDER/master.pid")" && rm "$FOLDER/master.pid"
        ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
