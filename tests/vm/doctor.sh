# Verdicts of doctor in the VM: over settings as they are meant to be, with one wrong at a time, and mended again. Sourced by run.sh.
#
# Each reading is $out/doctor/NAME.json. tests/independent/check_doctor.py knows which checks have to turn.
mkdir -p $out/doctor

judge() {
  /run/roce-analyze doctor --all --format json > $out/doctor/$1.json 2> $out/doctor/$1.txt
  echo "doctor, $1: exit code $?, after $(cut -d' ' -f1 /proc/uptime) s"
}

# DSCP 26 of connections that rdma_cm makes: the DSCP is in the upper six bits.
modprobe configfs
mount -t configfs none /sys/kernel/config
tos() { echo $2 > /sys/kernel/config/rdma_cm/$1/ports/1/default_roce_tos; }
# A path MTU of 4,096 and its headers.
for device in va0 vb0; do ip link set $device mtu 4200; done
for device in rxe0 rxe1; do
  mkdir /sys/kernel/config/rdma_cm/$device
  tos $device $((26 << 2))
done
for device in rxe0 rxe1; do
  port=/sys/class/infiniband/$device/ports/1
  for index in $(seq 0 15); do
    # Places without a GID have no type.
    kind=$(cat $port/gid_attrs/types/$index 2> /dev/null) && echo "$device $index $(cat $port/gids/$index) $kind"
  done
done > $out/doctor/gids.txt
judge good

ip link set va0 mtu 1500
judge mtu
ip link set va0 mtu 4200
judge mtu_mended

# The address goes, and with it its GID. The kernel changes the table a moment later.
ip addr del 10.77.0.1/24 dev va0
sleep 1
judge gid
ip addr add 10.77.0.1/24 dev va0
sleep 1
judge gid_mended

tos rxe0 0
judge tos
tos rxe0 $((26 << 2))
judge tos_mended
