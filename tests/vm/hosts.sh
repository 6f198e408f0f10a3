# Two hosts that know nothing of each other: `client` has rxe0 and va0, `server` has rxe1 and vb0. Each records its own counters while
# packets between them are lost, and tcpdump captures both ends. Sourced by run.sh, behind what the other runs need.
#
# Results: $out/hosts/HOST/recording.pcapng.zst, $out/hosts/HOST.pcap, and the driver's counters in $out/hosts/before.txt and after.txt.
mkdir -p $out/hosts/client $out/hosts/server
runs=$out/hosts/runs.txt

driver() { for device in rxe0 rxe1; do rdma statistic show link $device/1; done > $out/hosts/$1.txt; }

# A live run in a mount namespace whose folder of RDMA devices has one device: host NAME DEVICE INTERFACE
host() {
  unshare -m bash -c "
    mount --make-rprivate /
    mount -t tmpfs none /sys/class/infiniband
    ln -s /sys/devices/virtual/infiniband/$2 /sys/class/infiniband/$2
    exec /run/roce-analyze live -i $3 --host-name $1 --interval 500ms --rotate 15min --format none -o /run/$1 --record" 2> $out/hosts/$1.txt &
}

driver before
host client rxe0 va0
client=$!
host server rxe1 vb0
server=$!
tcpdumps=
for name in client:va0 server:vb0; do
  tcpdump -Z root -i ${name#*:} --immediate-mode -B 16384 -s 128 -w /run/${name%:*}.pcap udp port 4791 2> $out/hosts/${name%:*}.tcpdump.txt &
  tcpdumps="$tcpdumps $!"
done
for _ in $(seq 120); do
  [ -e /run/client/recording.pcapng.zst -a -e /run/server/recording.pcapng.zst ] && break
  sleep 0.5
done
sleep 2
sw tc qdisc add dev vb1 root netem loss 5%
perftest hosts ib_write_bw -n 60 -s 16384 -u 14
free vb1
# A last reading behind the last packet.
sleep 1
driver after
kill -INT $tcpdumps $client $server
wait $tcpdumps
wait $client
echo "client: exit code $?"
wait $server
echo "server: exit code $?"
for name in client server; do
  cp /run/$name/recording.pcapng.zst $out/hosts/$name/
  cp /run/$name.pcap $out/hosts/
done
