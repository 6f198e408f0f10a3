# Two Soft-RoCE devices in one network namespace, rxe0 at va0 (10.77.0.1) and rxe1 at vb0 (10.77.0.2), whose packets pass a second
# one, sw: what is delayed, marked or lost there is lost between the two. Sourced by run.sh.

# crc32_generic first: without it the driver finds no checksum. RED would drop TCP without ECN, which perftest talks over.
for module in crc32_generic ib_uverbs rdma_rxe rdma_ucm veth sch_red sch_netem sch_tbf sch_ingress act_mirred cls_matchall cls_bpf; do
  modprobe $module || echo "no module $module"
done
sysctl -q -w net.ipv4.tcp_ecn=1

ip netns add sw
for side in a b; do
  ip link add v${side}0 type veth peer name v${side}1 netns sw
  ip link set v${side}0 address 02:00:00:00:00:0$side up
  ip -n sw link set v${side}1 up
  ip netns exec sw tc qdisc add dev v${side}1 clsact
done
ip netns exec sw tc filter add dev va1 ingress matchall action mirred egress redirect dev vb1
ip netns exec sw tc filter add dev vb1 ingress matchall action mirred egress redirect dev va1
ip addr add 10.77.0.1/24 dev va0
ip addr add 10.77.0.2/24 dev vb0

# Both addresses are this host's own. That packets between them take the wire: routes of their own before the local ones.
for name in all default va0 vb0; do
  echo 1 > /proc/sys/net/ipv4/conf/$name/accept_local
  echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter
done
ip rule add pref 1 iif va0 lookup local
ip rule add pref 2 iif vb0 lookup local
ip rule add pref 10 to 10.77.0.2 lookup 101
ip rule add pref 11 to 10.77.0.1 lookup 102
ip route add 10.77.0.2/32 dev va0 src 10.77.0.1 table 101
ip route add 10.77.0.1/32 dev vb0 src 10.77.0.2 table 102
ip rule del pref 0
ip rule add pref 100 lookup local
ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:0b dev va0 nud permanent
ip neigh add 10.77.0.1 lladdr 02:00:00:00:00:0a dev vb0 nud permanent

rdma link add rxe0 type rxe netdev va0
rdma link add rxe1 type rxe netdev vb0
rdma link show
ping -c 2 -W 2 10.77.0.2 > /dev/null || echo "10.77.0.2 does not answer"
