lock=$base/lock-$net
if has_owner && [ "$owner_id" = "$id" ]; then
  say busy "$owner $since $owner_name"
  exit 0
fi
if [ -n "$all" ]; then
  rm -f "$base"/bin/roce-analyze-*
  rmdir "$base/bin" 2> /dev/null
fi
if [ "$(cat "$run/roce-fleet" 2> /dev/null)" = "$id" ]; then
  # Only what this run has made: names that it gives.
  rm -f "$run"/capture.* "$run"/tcpdump.* "$run"/messages* "$run"/report "$run"/times
  [ -d "$run/live" ] && ! [ -L "$run/live" ] && rm -rf "$run/live"
  rm -f "$run/roce-fleet"
  rmdir "$run" && say removed 1
else
  say missing 1
fi
has_owner || rm -f "$lock"
rmdir "$base" 2> /dev/null
say end 1
