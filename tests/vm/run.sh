# What runs in the VM: perftest and rping between two Soft-RoCE devices, while a live run with the probe and tcpdump watch both ends.
# /mnt/set says which scenarios: smoke or full. Results are in /mnt/out: `up` says that it has come so far that they can be had; what
# runs.txt has is what was started: a line for each process, `scenario role pid comm`. Behind it, two hosts are recorded (hosts.sh), runs of
# traffic are started and stopped (traffic.sh), doctor judges the setup (doctor.sh), and four hosts are captured at once (fleet.sh).
cd /mnt
out=/mnt/out
set=$(cat set)
runs=$out/runs.txt
. ./net.sh
uname -r > $out/kernel.txt
if ! [ -e /sys/class/infiniband/rxe0 -a -e /sys/class/infiniband/rxe1 ]; then
  echo "there are no Soft-RoCE devices"
  exit 1
fi
touch $out/up
# Its pages are not to come through the shared folder while it runs.
cp roce-analyze /run/

# Runs a server and a client to the client's end: pair SCENARIO SERVER CLIENT, each a command.
pair() {
  local name=$1 server client watch
  $2 > $out/$name.server.txt 2>&1 &
  server=$!
  sleep 2
  $3 > $out/$name.client.txt 2>&1 &
  client=$!
  echo "$name server $server ${2%% *}" >> $runs
  echo "$name client $client ${3%% *}" >> $runs
  (sleep ${patience:-60}; kill $client) 2> /dev/null &
  watch=$!
  wait $client
  echo "$name: exit code $?, after $(cut -d' ' -f1 /proc/uptime) s"
  kill $watch $server 2> /dev/null
  wait $watch $server 2> /dev/null
}

# One of perftest's programs over both devices: perftest SCENARIO PROGRAM ARGUMENTS.
perftest() {
  local name=$1 program=$2
  shift 2
  pair $name "$program -d rxe1 -F --tclass=106 -x 1 $*" "$program -d rxe0 -F --tclass=106 -x 1 $* 10.77.0.2"
}

sw() { ip netns exec sw "$@"; }

# Marks what goes out to a device of the switch at more than a rate: red DEVICE RATE.
red() {
  sw tc qdisc add dev $1 root handle 1: tbf rate $2 burst 6kb limit 900kb
  sw tc qdisc add dev $1 parent 1: handle 2: red limit 800000 min 30000 max 120000 probability 0.3 avpkt 1000 burst 60 ecn bandwidth $2
}

free() { sw tc qdisc del dev $1 root; }

# Packets that the clients have sent.
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }

for device in va0 vb0; do
  tcpdump -Z root -i $device --immediate-mode -B 16384 -s 128 -w /run/$device.pcap udp port 4791 2> $out/$device.tcpdump.txt &
  tcpdumps="$tcpdumps $!"
done
# Where it writes a dataset, in one part: to write one takes a program that is built for tests some seconds here.
/run/roce-analyze live -i va0 -i vb0 --probe --rotate 15min --interval 2s --format json -o /run/live --record > $out/live.json 2> $out/live.txt &
live=$!
for _ in $(seq 120); do
  [ -e /run/live/recording.pcapng.zst ] && break
  sleep 0.5
done
sleep 2
echo "watching after $(cut -d' ' -f1 /proc/uptime) s"

perftest write ib_write_bw -n 20 -s 16384
perftest send ib_send_bw -n 20 -s 16384
pair rping "rping -s -a 10.77.0.2 -C 5 -v" "rping -c -I 10.77.0.1 -a 10.77.0.2 -C 5 -v"
if [ "$set" = full ]; then
  perftest read ib_read_bw -n 20 -s 16384
  perftest datagram ib_send_bw -c UD -n 100 -s 1024 -r 256
  red vb1 16mbit
  perftest marked ib_send_bw -n 60 -s 16384 -u 19 -t 16 -r 64
  free vb1
  sw tc qdisc add dev vb1 root netem loss 3%
  sw tc qdisc add dev va1 root netem loss 20%
  perftest loss ib_write_bw -n 60 -s 16384 -u 14
  free vb1
  free va1
  # Nothing passes for a while when it has begun: code 14 of the timeout is 67 ms.
  (
    enough=$(($(sent) + 300))
    until [ $(sent) -ge $enough ]; do sleep 0.1; done
    sw tc qdisc add dev vb1 root netem loss 100%
    sleep 0.6
    free vb1
  ) &
  perftest blackout ib_write_bw -n 300 -s 16384 -u 14 -t 4
  # The sender may have 30 messages under way, the receiver has a buffer for one.
  pair rnr "ib_send_bw -d rxe1 -F --tclass=106 -x 1 -n 30 -s 1024 -r 1 -t 1" \
    "ib_send_bw -d rxe0 -F --tclass=106 -x 1 -n 30 -s 1024 -r 1 -t 30 10.77.0.2"
fi
sleep 1
kill -INT $tcpdumps
wait $tcpdumps
for device in rxe0 rxe1; do rdma statistic show link $device/1; done > $out/statistic.txt
if [ "$set" = full ]; then
  ip link set vb0 down
  sleep 1
  ip link set vb0 up
  sleep 1
fi
kill -INT $live
wait $live
echo "live run: exit code $?"

# What a second signal ends at once leaves nothing at the interface either. Its results wait for a pipe that is full and that nobody reads.
mkfifo /run/full
sleep 600 < /run/full &
full=$!
(head -c 65536 /dev/zero; exec /run/roce-analyze live -i va0 --capture tc --format json) > /run/full 2> $out/second.txt &
second=$!
for _ in $(seq 120); do
  grep -qs 'no RoCE packets' $out/second.txt && break
  sleep 0.5
done
filters() { tc filter show dev va0 ingress; tc filter show dev va0 egress; }
filters > $out/filters.before.txt
kill -INT $second
# Signals of the same second are one wish.
sleep 2
kill -TERM $second
wait $second
echo "second signal: exit code $?" | tee $out/second.code.txt
kill $full
filters > $out/filters.after.txt
. ./hosts.sh
. ./traffic.sh
. ./doctor.sh
. ./fleet.sh
mkdir $out/live
cp /run/live/recording.pcapng.zst $out/live/
cp /run/va0.pcap /run/vb0.pcap $out/
