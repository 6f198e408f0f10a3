mkdir -m 700 "$base/bin" 2> /dev/null
if ! [ -d "$base/bin" ] || [ -L "$base/bin" ] || ! [ -O "$base/bin" ]; then
  say problem "$base/bin is not this user's own folder"
  exit 0
fi
cat > "$base/bin/.$pushed.$$" && chmod 700 "$base/bin/.$pushed.$$"
if [ "$(size_of "$base/bin/.$pushed.$$")" != "$bytes" ]; then
  rm -f "$base/bin/.$pushed.$$"
  say problem "the program did not arrive whole: the disk may be full"
elif version=$("$base/bin/.$pushed.$$" -V 2>&1 < /dev/null); then
  mv "$base/bin/.$pushed.$$" "$base/bin/$pushed"
  say version "${version##* }"
else
  rm -f "$base/bin/.$pushed.$$"
  say problem "the program does not run there: $(echo "$version" | head -n 1)"
fi
