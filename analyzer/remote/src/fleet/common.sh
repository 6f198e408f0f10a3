LC_ALL=C
export LC_ALL
umask 077
trap '' HUP PIPE
say() { printf '%s=%s\n' "$1" "$2"; }
# The time at which a process started: field 22 of its line, counted behind the name, which may have blanks.
start_of() {
  stat=$(cat "/proc/$1/stat" 2> /dev/null) || return 1
  set -- ${stat##*) }
  echo "${20}"
}
# True if the process that has the lock runs: its number and its start are those of the lock.
has_owner() {
  owner='' since='' begun='' owner_id='' owner_name=''
  read -r owner begun since owner_id owner_name 2> /dev/null < "$lock" || return 1
  [ -n "$begun" ] && [ "$(start_of "$owner")" = "$begun" ]
}
size_of() { wc -c < "$1" | tr -d ' '; }
hash_of() {
  hash=$(sha256sum "$1" 2> /dev/null) || hash=-
  echo "${hash%% *}"
}
say_files() {
  for file in "$run"/capture.* "$run"/tcpdump.* "$run"/live/recording.*; do
    [ -f "$file" ] && say file "$(size_of "$file") $(hash_of "$file") ${file#"$run"/}"
  done
}
say_messages() {
  cat "$run"/messages* 2> /dev/null | tail -n 12 | cut -c 1-500 | while IFS= read -r line; do say message "$line"; done
}
say_counters() {
  for port in "${ROCE_FLEET_SYSFS:-/sys}"/class/infiniband/*/ports/*; do
    [ -d "$port" ] || continue
    device=${port%/ports/*}
    for name in counters/port_rcv_data counters/port_xmit_data hw_counters/rcvd_pkts hw_counters/sent_pkts; do
      value=$(cat "$port/$name" 2> /dev/null) && say "$1" "${device##*/} ${port##*/} ${name#*/} $value"
    done
  done
}
