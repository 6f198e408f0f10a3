# True while the controller is there: it writes a line each second. Waits for up to a second.
quiet=0
is_followed() {
  # The exit code stands behind what was read: an end is nothing and 0.
  beat=$(
    timeout 1 dd bs=64 count=1 2> /dev/null <&3
    echo $?
  )
  case $beat in
    0) return 1 ;;
    1[0-9][0-9])
      quiet=$((quiet + 1))
      [ $quiet -lt "$silence" ]
      ;;
    *) quiet=0 ;;
  esac
}
bytes_of_all() {
  total=0
  for file in "$run"/tcpdump.*; do [ -f "$file" ] && total=$((total + $(size_of "$file"))); done
  echo $total
}
code=0
while [ "$(date +%s)" -lt "$start" ]; do
  if ! is_followed; then
    stopped=input
    break
  fi
done
pids=''
number=0
if [ -z "$stopped" ]; then
  user=''
  [ "$(id -u)" = 0 ] && user='-Z root'
  for interface in "$@"; do
    # shellcheck disable=SC2086
    timeout -s TERM "$limit" $pinned tcpdump $user -n -i "$interface" -s "$snaplen" -B 65536 -U -w "$run/tcpdump.$number.pcap" "$filter" \
      < /dev/null > /dev/null 2> "$run/messages.$number" &
    pids="$pids $!"
    number=$((number + 1))
  done
  until [ "$(ls "$run" | grep -c '^tcpdump\.')" -eq $number ]; do
    kill -0 $pids 2> /dev/null || break
    sleep 0.05
  done
  say captures 1
fi
while [ -z "$stopped" ]; do
  is_followed || stopped=input
  kill -0 $pids 2> /dev/null || break
  [ -n "$until" ] && [ "$(date +%s)" -ge "$until" ] && stopped=time
  [ "$(bytes_of_all)" -ge "$max_bytes" ] && stopped=size
done
for pid in $pids; do
  kill -TERM "$pid" 2> /dev/null
  wait "$pid"
  ended=$?
  # 124: timeout has ended it; 143: this script has.
  case $ended in 0 | 124 | 143) ;; *) code=$ended ;; esac
done
for file in "$run"/tcpdump.*.pcap; do
  [ -f "$file" ] || continue
  if command -v zstd > /dev/null 2>&1; then
    zstd -q -3 -T1 --rm "$file" 2> /dev/null || rm -f "$file.zst"
  elif command -v gzip > /dev/null 2>&1; then
    gzip -1 "$file" 2> /dev/null || rm -f "$file.gz"
  fi
done
