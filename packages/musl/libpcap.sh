#!/usr/bin/env bash
# Builds a static libpcap with musl's compiler, from the source package of this machine's Debian or Ubuntu.
# Usage: libpcap.sh DIR. Then: LIBPCAP_LIBDIR=DIR/lib cargo build --target x86_64-unknown-linux-musl.
# Needed: dpkg-dev, flex, bison, make, musl-tools, linux-libc-dev. Without RDMA support, D-Bus and Bluetooth: they are no static libraries.
set -euo pipefail
[ $# = 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# This machine's sources of packages, for their source packages.
mkdir -p "$work/apt/lists/partial" "$work/source"
apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    grep -E ' (main|universe)$' | sort -u > "$work/apt/sources.list"
options=(-qq -o "Dir::Etc::sourcelist=$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::Lists=$work/apt/lists"
    -o APT::Sandbox::User=root)
apt-get "${options[@]}" update
(cd "$work/source" && apt-get "${options[@]}" source libpcap)

# musl's compiler knows its own headers alone: those of the kernel are the system's.
mkdir "$work/kernel"
ln -s /usr/include/linux /usr/include/asm-generic "$work/kernel/"
ln -s "/usr/include/$(gcc -print-multiarch)/asm" "$work/kernel/asm"

cd "$work"/source/libpcap-*/
CC=musl-gcc CFLAGS="-O2 -g0 -fPIC -ffile-prefix-map=$PWD=/libpcap -isystem $work/kernel" ./configure --quiet --prefix="$out" \
    --disable-shared --disable-rdma --disable-dbus --disable-bluetooth --disable-usb --without-libnl
make --silent libpcap.a
mkdir -p "$out/lib"
cp libpcap.a "$out/lib/"
# musl's targets link unwinding statically; gcc's library has it.
cp "$(gcc -print-file-name=libgcc_eh.a)" "$out/lib/libunwind.a"
echo "$out/lib/libpcap.a: $(cat VERSION)"
