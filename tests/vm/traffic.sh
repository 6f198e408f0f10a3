# Runs of traffic in the VM: two streams each way of ib_write_bw between rxe0 and rxe1, which are the devices of two hosts in one network.
# One run goes to its end; another one is looked at while it goes on, and stopped. Sourced by run.sh.
#
# Results: $out/traffic/run (the folder of the run), status.json, stop.json, and left.txt, the processes that are there behind it.
mkdir -p $out/traffic /run/traffic
export XDG_STATE_HOME=/run/state XDG_RUNTIME_DIR=/run/user
mkdir -p -m 700 /run/user
cat > /run/traffic/fabric.toml << 'END'
[ssh]
timeout = "120s"

[[host]]
name = "client"
address = "local"

[[host]]
name = "server"
address = "local"
END
# plan NAME DURATION
plan() {
  cat > /run/traffic/$1.toml << END
name = "$1"
tool = "ib_write_bw"
duration = "$2"
grace = "60s"
tclass = 106
# Few messages under way: an emulated processor answers late.
options = ["-t", "2", "-u", "19"]

[[pair]]
from = { at = "client:rxe0", address = "10.77.0.1" }
to = { at = "server:rxe1", address = "10.77.0.2" }
both = true
streams = [ { size = 1024 }, { size = 4096 } ]
END
}
plan short 6s
plan long 600s
traffic() { (cd /run/traffic && /run/roce-analyze traffic "$@"); }

traffic plan short.toml --preflight > $out/traffic/plan.txt 2>&1
echo "traffic plan: exit code $?"
traffic run short.toml -o kept > $out/traffic/run.txt 2>&1
echo "traffic run: exit code $?, after $(cut -d' ' -f1 /proc/uptime) s"
cp -r /run/traffic/kept $out/traffic/run
traffic run --detach long.toml > $out/traffic/start.txt 2>&1
echo "traffic run --detach: exit code $?"
sleep 5
traffic run --status --format json > $out/traffic/status.json 2> $out/traffic/status.txt
echo "traffic run --status: exit code $?"
traffic run --stop --format json > $out/traffic/stop.json 2> $out/traffic/stop.txt
echo "traffic run --stop: exit code $?, after $(cut -d' ' -f1 /proc/uptime) s"
traffic run --stop > $out/traffic/again.txt 2>&1
echo "traffic run --stop, again: exit code $?" | tee $out/traffic/again.code.txt
for file in /proc/[0-9]*/environ; do
  { tr '\0' '\n' < $file; } 2> /dev/null | grep -q ^ROCE_ANALYZE_RUN && echo $file
done > $out/traffic/left.txt
unset XDG_STATE_HOME XDG_RUNTIME_DIR
