# Four hosts in an incast: `fleet capture` at the ports of four Soft-RoCE devices while `traffic run` has three of them write to
# the second one. Each port is in a network namespace of its own, which is a host of the inventory; the devices are in the first
# namespace, which Soft-RoCE wants.
# Sourced by run.sh. The shell of the image has an `ip` of its own, without namespaces: the inventory names the real one.
#
# Results: $out/fleet/capture.txt and capture.code, fleet.json, report.json and report.code; incast.txt and traffic.json are of `traffic run`.
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

# Three senders, one receiver: a plan of traffic over the devices, whose hosts are this one. Few messages are under way, because an emulated
# processor answers late.
for n in 1 2 3 4; do
  cat >> /run/fabric.toml << EOF
[[host]]
name = "s$n"
address = "local"
EOF
done
printf '%s\n' '[ssh]' 'timeout = "120s"' >> /run/fabric.toml
cat > /run/incast.toml << EOF
name = "incast"
tool = "ib_write_bw"
duration = "4s"
grace = "60s"
ports = "19001-19003"
tclass = 106
options = ["-t", "2", "-u", "19"]
EOF
for n in 1 3 4; do
  cat >> /run/incast.toml << EOF
[[pair]]
from = { at = "s$n:rf$n", address = "10.78.0.$n" }
to = { at = "s2:rf2", address = "10.78.0.2" }
streams = [ { size = 16384 } ]
EOF
done
mkdir -p -m 700 /run/user
export XDG_STATE_HOME=/run/state XDG_RUNTIME_DIR=/run/user
cd /run
/run/roce-analyze fleet capture h1 h2 h3 h4 --inventory fabric.toml -o incast --remote-folder /run/captures --counters -- \
  bash -c '/run/roce-analyze traffic run incast.toml --inventory fabric.toml -o traffic-incast > incast.txt 2>&1' > $out/fleet/capture.txt 2>&1
echo $? > $out/fleet/capture.code
/run/roce-analyze incast --format json > $out/fleet/report.json 2> $out/fleet/report.txt
echo $? > $out/fleet/report.code
/run/roce-analyze incast > $out/fleet/report-text.txt 2>&1
cp incast/fleet.json incast.txt fabric.toml incast.toml $out/fleet/
cp traffic-incast/run.json $out/fleet/traffic.json
unset XDG_STATE_HOME XDG_RUNTIME_DIR
cd /mnt
echo "fleet: exit codes $(cat $out/fleet/capture.code) and $(cat $out/fleet/report.code), after $(cut -d' ' -f1 /proc/uptime) s"
