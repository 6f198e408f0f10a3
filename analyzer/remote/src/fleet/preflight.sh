say release "$(uname -r)"
say machine "$(uname -m)"
say hostname "$(uname -n)"
say boot "$(cat /proc/sys/kernel/random/boot_id 2> /dev/null)"
net=$(readlink /proc/self/ns/net 2> /dev/null)
say net "$net"
say uid "$(id -u)"
say rights "$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status 2> /dev/null)"
for tool in tcpdump timeout zstd gzip sha256sum taskset dd; do command -v "$tool" > /dev/null 2>&1 && say tool "$tool"; done
sudo -n true < /dev/null > /dev/null 2>&1 && say tool sudo
[ -n "$base" ] || base=/var/tmp/roce-fleet-$(id -u)
mkdir -m 700 "$base" 2> /dev/null
if ! [ -d "$base" ] || [ -L "$base" ]; then
  say problem "$base cannot be made"
elif ! [ -O "$base" ] || [ "$(ls -ld "$base" | cut -c 1-10)" != drwx------ ]; then
  say problem "$base is not this user's own folder of mode 700"
else
  say base "$base"
  say free "$(df -Pk "$base" 2> /dev/null | { read -r line; read -r device blocks used free rest; echo "$free"; })"
fi
file_rights() { case $(getcap "$1" 2> /dev/null) in *cap_net_raw*) echo 1 ;; *) echo 0 ;; esac; }
for program in "$own" roce-analyze "$base/bin/$pushed"; do
  [ -n "$program" ] || continue
  path=$(command -v "$program" 2> /dev/null) && [ -f "$path" ] || continue
  version=$("$path" -V 2> /dev/null < /dev/null) || continue
  able=0
  case $("$path" live --help 2> /dev/null < /dev/null) in *--host-name*) able=1 ;; esac
  say program "$able $(file_rights "$path") ${version##* } $path"
done
path=$(command -v tcpdump 2> /dev/null) && say tcpdump "$(file_rights "$path") $path"
for interface in /sys/class/net/*; do
  [ -e "$interface/operstate" ] || continue
  say interface "${interface##*/} $(cat "$interface/operstate" 2> /dev/null) $(cat "$interface/speed" 2> /dev/null || echo -)"
done
for port in "${ROCE_FLEET_SYSFS:-/sys}"/class/infiniband/*/ports/*; do
  [ -d "$port" ] || continue
  device=${port%/ports/*}
  cat "$port"/gid_attrs/ndevs/* 2> /dev/null | sort -u | while read -r name; do say rdma "${device##*/} ${port##*/} $name"; done
done
if command -v chronyc > /dev/null 2>&1; then
  say sync "chrony $(chronyc -c tracking 2> /dev/null < /dev/null | head -n 1)"
elif command -v timedatectl > /dev/null 2>&1; then
  say sync "systemd $(timedatectl show -p NTPSynchronized --value 2> /dev/null < /dev/null)"
fi
grep -lsx ptp4l /proc/[0-9]*/comm > /dev/null 2>&1 && say sync ptp4l
lock=$base/lock-${net##*[}
lock=${lock%]}
has_owner && say busy "$owner $since $owner_name"
say end 1
while read -r line; do say time "$(date +%s.%N)"; done
