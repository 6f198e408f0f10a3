# Four hosts in an incast: `fleet capture` at the ports of four Soft-RoCE devices while three of them write to the second one. Each port is
# in a network namespace of its own, which is a host of the inventory; the devices are in the first namespace, which Soft-RoCE wants.
# Sourced by run.sh. The shell of the image has an `ip` of its own, without namespaces: the inventory names the real one.
#
# Results: $out/fleet/capture.txt and capture.code, fleet.json, report.json and report.code; incast.txt is what perftest printed.
mkdir -p $out/fleet
modprobe cls_u32 || echo "no module cls_u32"
ip netns add fsw
for n in 1 2 3 4; do
  ip netns add h$n
  ip link add f$n type veth peer name port netns h$n
  ip link set f$n address 02:00:00:00:01:0$n up
  ip -n h$n link set port up
  ip -n h$n link add uplink type veth peer name p$n netns fsw
  ip -n h$n link set uplink up
  ip -n fsw link set p$n up
  # What comes at one side of the namespace leaves at the other.
  for device in port uplink; do ip netns exec h$n tc qdisc add dev $device clsact; done
  ip netns exec h$n tc filter add dev port ingress matchall action mirred egress redirect dev uplink
  ip netns exec h$n tc filter add dev uplink ingress matchall action mirred egress redirect dev port
  ip addr add 10.78.0.$n/24 dev f$n
  echo 1 > /proc/sys/net/ipv4/conf/f$n/accept_local
  echo 0 > /proc/sys/net/ipv4/conf/f$n/rp_filter
done
for n in 1 2 3 4; do
  ip netns exec fsw tc qdisc add dev p$n clsact
  # All addresses are this host's own: packets between two of them take the wire, and perftest's own connection does not.
  ip rule add pref 3 iif f$n lookup local
  ip rule add pref 15 from 10.78.0.$n to 10.78.0.$n lookup local
  ip rule add pref 2$n from 10.78.0.$n to 10.78.0.0/24 lookup 20$n
  ip route add 10.78.0.0/24 dev f$n src 10.78.0.$n table 20$n
  for m in 1 2 3 4; do
    [ $n = $m ] && continue
    ip neigh add 10.78.0.$m lladdr 02:00:00:00:01:0$m dev f$n nud permanent
    ip netns exec fsw tc filter add dev p$n ingress protocol ip u32 match ip dst 10.78.0.$m/32 action mirred egress redirect dev p$m
  done
  rdma link add rf$n type rxe netdev f$n
  cat >> /run/fabric.toml << EOF
[[host]]
name = "h$n"
address = "local"
prefix = "/usr/bin/ip netns exec h$n"
interfaces = ["port"]
EOF
done

# Three senders, one receiver.
cat > /run/incast.sh << EOF
servers='' clients=''
for n in 1 3 4; do
  ib_write_bw -d rf2 -F --tclass=106 -x 1 -n 20 -s 16384 -p 1900\$n &
  servers="\$servers \$!"
done
sleep 2
for n in 1 3 4; do
  timeout 60 ib_write_bw -d rf\$n -F --tclass=106 -x 1 -n 20 -s 16384 -p 1900\$n 10.78.0.2 &
  clients="\$clients \$!"
done
code=0
for client in \$clients; do wait \$client || code=\$?; done
kill \$servers 2> /dev/null
wait \$servers
exit \$code
EOF
/run/roce-analyze fleet capture --hosts /run/fabric.toml -o /run/fleet --remote-folder /run/captures --counters -- \
  bash -c 'bash /run/incast.sh > /run/incast.txt 2>&1' > $out/fleet/capture.txt 2>&1
echo $? > $out/fleet/capture.code
/run/roce-analyze /run/fleet --format json > $out/fleet/report.json 2> $out/fleet/report.txt
echo $? > $out/fleet/report.code
cp /run/fleet/fleet.json /run/incast.txt $out/fleet/
echo "fleet: exit codes $(cat $out/fleet/capture.code) and $(cat $out/fleet/report.code), after $(cut -d' ' -f1 /proc/uptime) s"
