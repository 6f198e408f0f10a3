# Four Soft-RoCE devices in one network namespace, as four hosts: rxe0 at va0 (10.77.0.1) to rxe3 at vd0 (10.77.0.4). Their packets pass
# a bridge in a second namespace, sw: what is marked, delayed or lost at its ports is that between hosts. Sourced by fabric.sh.

for module in crc32_generic ib_uverbs rdma_rxe rdma_ucm veth bridge sch_red sch_netem sch_tbf; do
  modprobe $module || echo "no module $module"
done
sysctl -q -w net.ipv4.tcp_ecn=1
sides="a b c d"
sw() { ip netns exec sw "$@"; }

ip netns add sw
sw ip link add br0 type bridge
sw ip link set br0 up
number=0
for side in $sides; do
  number=$((number + 1))
  ip link add v${side}0 type veth peer name v${side}1 netns sw
  ip link set v${side}0 address 02:00:00:00:00:0$side up
  sw ip link set v${side}1 master br0 up
  ip addr add 10.77.0.$number/24 dev v${side}0
done

# All addresses are this host's own. That packets between them take the wire: routes of their own before the local ones.
for name in all default va0 vb0 vc0 vd0; do
  echo 1 > /proc/sys/net/ipv4/conf/$name/accept_local
  echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter
  echo 1 > /proc/sys/net/ipv4/conf/$name/arp_ignore
done
number=0
for side in $sides; do
  number=$((number + 1))
  ip rule add pref $number iif v${side}0 lookup local
  # Sockets of a device (RoCE), and those of an address (TCP), leave by its interface.
  ip rule add pref $((10 + number)) oif v${side}0 lookup 10$number
  ip rule add pref $((20 + number)) from 10.77.0.$number to 10.77.0.0/24 lookup 10$number
  ip route add 10.77.0.0/24 dev v${side}0 src 10.77.0.$number table 10$number
  other=0
  for name in $sides; do
    other=$((other + 1))
    [ $name = $side ] || ip neigh add 10.77.0.$other lladdr 02:00:00:00:00:0$name dev v${side}0 nud permanent
  done
done
# A socket without an address takes the next host's interface.
ip rule add pref 31 to 10.77.0.1 lookup 102
ip rule add pref 32 to 10.77.0.0/24 lookup 101
ip rule del pref 0
ip rule add pref 100 lookup local

number=0
for side in $sides; do
  rdma link add rxe$number type rxe netdev v${side}0
  number=$((number + 1))
done
rdma link show
for number in 2 3 4; do ping -c 1 -W 2 -I 10.77.0.1 10.77.0.$number > /dev/null || echo "10.77.0.$number does not answer"; done
