# What runs in the VM for `cargo xtask vm-test --captures`: perftest between two Soft-RoCE devices over a switch that loses, delays or
# duplicates packets, captured before it and behind it at once.
#
# Each run leaves four files in /mnt/out: NAME.sender.pcap (at va0, the client's side), NAME.receiver.pcap (at vb0, the server's side),
# NAME.toml (commands, impairments, and the counters before and after it), and NAME.txt (what perftest printed, for people).
cd /mnt
out=/mnt/out
. ./net.sh
for module in sch_prio cls_u32; do modprobe $module || echo "no module $module"; done
if ! [ -e /sys/class/infiniband/rxe0 -a -e /sys/class/infiniband/rxe1 ]; then
  echo "there are no Soft-RoCE devices"
  exit 1
fi
touch $out/up

sw() { ip netns exec sw "$@"; }

# Impairs RoCE alone, on its way out of a device of the switch: perftest's own connection and ARP pass beside it, and are not in
# netem's counters. impair DEVICE NETEM_ARGUMENTS
impair() {
  local device=$1
  shift
  [ -n "$*" ] || return 0
  sw tc qdisc add dev $device root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
  sw tc qdisc add dev $device parent 1:2 handle 20: netem limit 10000 $*
  sw tc filter add dev $device parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:2
}

# The counters of netem on a device: `{ sent_bytes = N, sent_packets = N, dropped = N }`.
netem() {
  sw tc -s qdisc show dev $1 | awk '
    /^qdisc/ { mine = $2 == "netem" }
    mine && $1 == "Sent" { gsub(/[(,]/, ""); printf "{ sent_bytes = %d, sent_packets = %d, dropped = %d }", $2, $4, $7 }'
}

# Every counter of a Soft-RoCE device: `{ name = N, ... }`.
counters() {
  local file separator="{"
  for file in /sys/class/infiniband/$1/ports/1/hw_counters/*; do
    [ "${file##*/}" = lifespan ] && continue
    printf '%s %s = %s' "$separator" "${file##*/}" "$(cat $file)"
    separator=,
  done
  printf ' }'
}

# What tcpdump says at its end: `{ captured = N, received = N, dropped = N }`.
said() {
  awk '/packets captured/ { c = $1 } /received by filter/ { r = $1 } /dropped by kernel/ { d = $1 }
    END { printf "{ captured = %d, received = %d, dropped = %d }", c, r, d }' $1
}

# One run: record NAME TO_SERVER TO_CLIENT PROGRAM ARGUMENTS. The second and the third are netem's arguments, or nothing.
record() {
  local name=$1 to_server=$2 to_client=$3 program=$4 tcpdumps= server client watch device code
  shift 4
  impair vb1 $to_server
  impair va1 $to_client
  for device in va0 vb0; do
    tcpdump -Z root -i $device --immediate-mode -B 65536 -s 96 -w /run/$device.pcap udp port 4791 2> /run/$device.txt &
    tcpdumps="$tcpdumps $!"
  done
  sleep 1.5
  {
    echo "name = \"$name\""
    echo "kernel = \"$(uname -r), $(uname -v)\""
    echo "server = \"$program -d rxe1 -F --tclass=106 -x 1 $*\""
    echo "client = \"$program -d rxe0 -F --tclass=106 -x 1 $* 10.77.0.2\""
    echo "capture = \"tcpdump -Z root -i DEVICE --immediate-mode -B 65536 -s 96 -w FILE udp port 4791\""
    echo
    echo "[impairment]"
    echo "to_server = \"$to_server\""
    echo "to_client = \"$to_client\""
    echo
    echo "[before]"
    for device in rxe0 rxe1; do echo "$device = $(counters $device)"; done
    [ -n "$to_server" ] && echo "netem_to_server = $(netem vb1)"
    [ -n "$to_client" ] && echo "netem_to_client = $(netem va1)"
  } > $out/$name.toml
  $program -d rxe1 -F --tclass=106 -x 1 $* > $out/$name.txt 2>&1 &
  server=$!
  sleep 1.5
  timeout 60 $program -d rxe0 -F --tclass=106 -x 1 $* 10.77.0.2 >> $out/$name.txt 2>&1
  code=$?
  # What netem still holds, and answers to it.
  sleep 1
  kill $server 2> /dev/null
  wait $server 2> /dev/null
  kill -INT $tcpdumps
  wait $tcpdumps
  {
    echo
    echo "[after]"
    for device in rxe0 rxe1; do echo "$device = $(counters $device)"; done
    [ -n "$to_server" ] && echo "netem_to_server = $(netem vb1)"
    [ -n "$to_client" ] && echo "netem_to_client = $(netem va1)"
    echo
    echo "[tcpdump]"
    echo "sender = $(said /run/va0.txt)"
    echo "receiver = $(said /run/vb0.txt)"
    echo
    echo "[result]"
    echo "client_exit_code = $code"
  } >> $out/$name.toml
  cp /run/va0.pcap $out/$name.sender.pcap
  cp /run/vb0.pcap $out/$name.receiver.pcap
  echo "$name: exit code $code, $(stat -c %s /run/va0.pcap) and $(stat -c %s /run/vb0.pcap) bytes, after $(cut -d' ' -f1 /proc/uptime) s"
  [ -n "$to_server" ] && sw tc qdisc del dev vb1 root
  [ -n "$to_client" ] && sw tc qdisc del dev va1 root
}

write="ib_write_bw -s 8192 -u 14 -t 4"
send="ib_send_bw -s 8192 -u 14 -t 4 -r 64"
read="ib_read_bw -s 8192 -u 14 -t 4"

# Losses: single ones of each operation, bursts (a Gilbert-Elliott model), two queue pairs, and answers that are lost, too.
record write_loss "loss 3%" "" $write -n 40
record send_loss "loss 3%" "" $send -n 40
record read_loss "" "loss 3%" $read -n 40
record write_loss_bursts "loss gemodel 3% 40%" "" $write -n 40
record write_loss_two_queue_pairs "loss 3%" "" $write -n 20 -q 2
record send_loss_both_ways "loss 3%" "loss 10%" $send -n 40

# Reordering: netem sends what it "reorders" at once, and delays the others. After a short delay a packet comes before its resend,
# after a long one behind it. A correlation draws the numbers together: 15 % become 6 %.
record write_reorder "delay 100us reorder 97%" "" $write -n 40
record write_reorder_deep "delay 5ms reorder 97%" "" $write -n 40
record send_reorder "delay 400us reorder 85% 25%" "" $send -n 40
record send_reorder_deep "delay 5ms reorder 97%" "" $send -n 40
record read_reorder "" "delay 100us reorder 97%" $read -n 40

# Duplicates: of requests, of answers, of both.
record write_duplicate "duplicate 4%" "" $write -n 40
record send_duplicate "duplicate 10% 25%" "duplicate 10%" $send -n 40
record read_duplicate "duplicate 10%" "duplicate 4%" $read -n 40

# Together.
record write_loss_reorder "loss 2% delay 100us reorder 97%" "" $write -n 40
record send_loss_reorder "loss 2% delay 5ms reorder 97%" "" $send -n 40
record read_loss_reorder "" "loss 2% delay 400us reorder 97%" $read -n 40
record write_loss_reorder_duplicate "loss 2% duplicate 3% delay 1ms reorder 96%" "" $write -n 40
