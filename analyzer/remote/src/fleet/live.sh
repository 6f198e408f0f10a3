first=$1
shift
"$@" <&3 > /dev/null 2> "$run/messages" &
pid=$!
while kill -0 $pid 2> /dev/null; do
  if [ -e "$first" ]; then
    say captures 1
    break
  fi
  sleep 0.05
done
wait $pid
code=$?
grep -q -e 'ended at --max-size' "$run/messages" 2> /dev/null && stopped=size
