exec 3<&0
lock=$base/lock-$net
echo "$$ $(start_of $$) $(date +%s) $id $who" > "$lock.$$"
if ! ln "$lock.$$" "$lock" 2> /dev/null; then
  if has_owner; then
    rm -f "$lock.$$"
    say busy "$owner $since $owner_name"
    exit 0
  fi
  # Its owner has ended without removing it.
  rm -f "$lock"
  if ! ln "$lock.$$" "$lock" 2> /dev/null; then
    rm -f "$lock.$$"
    say problem "the lock $lock cannot be taken"
    exit 0
  fi
fi
rm -f "$lock.$$"
if ! mkdir "$run" 2> /dev/null || ! echo "$id" 2> /dev/null > "$run/roce-fleet"; then
  rm -f "$lock"
  say problem "the folder $run cannot be made"
  exit 0
fi
before=$(say_counters before)
say pid $$
stopped=''
