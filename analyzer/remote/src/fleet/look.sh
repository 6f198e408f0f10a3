lock=$base/lock-$net
if [ "$(cat "$run/roce-fleet" 2> /dev/null)" != "$id" ]; then
  say missing 1
  exit 0
fi
if has_owner && [ "$owner_id" = "$id" ]; then
  say busy "$owner $since $owner_name"
  exit 0
fi
if grep -q '^exit=' "$run/report" 2> /dev/null; then
  cat "$run/report"
else
  say_files
  say_messages
fi
say end 1
