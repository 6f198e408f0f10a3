after=$(say_counters after)
times > "$run/times" 2> /dev/null
report=$(
  printf '%s\n%s\n' "$before" "$after"
  say stopped "$stopped"
  say_files
  say_messages
  say cpu "$(tail -n 1 "$run/times" 2> /dev/null)"
  say exit "$code"
)
printf '%s\n' "$report" 2> /dev/null > "$run/report"
printf '%s\n' "$report"
rm -f "$lock"
