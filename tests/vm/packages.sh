#!/usr/bin/env bash
# packages.sh FOLDER KERNEL: fetches what the VM's image is made of, where it is not there yet.
#
# KERNEL is the beginning of a version: 6.1, 6.12. Debian's packages are kept in FOLDER/debs, and unpacked in FOLDER/system but for
# the kernel's: nothing is installed. Fails where they cannot be had.
set -euo pipefail
mkdir -p "$1/debs" && cd "$1"
kernel=$2

packages="busybox-static kmod libkmod2 bash iproute2 tcpdump libpcap0.8 libbpf1 libelf1 libmnl0 libbsd0 libmd0 libxtables12
  perftest rdma-core rdmacm-utils ibverbs-utils ibverbs-providers libibverbs1 librdmacm1 libibumad3 libnl-3-200 libnl-route-3-200 libpci3"

# The newest of Debian's kernels of this series, by name.
newest() {
  apt-cache search --names-only "^linux-image-${kernel//./\\.}\.[0-9]+[^ ]*-amd64$" | awk '$1 !~ /cloud|rt-amd64/ { print $1 }' | sort -V | tail -1
}

# What is missing: the kernel, unless one of the series has been fetched before, and packages.
missing() {
  compgen -G "debs/linux-image-$kernel.*.deb" > /dev/null || newest
  for package in $packages; do
    compgen -G "debs/${package}_*.deb" > /dev/null || echo "$package"
  done
}

fetch() {
  local names
  mapfile -t names < <(missing)
  [ ${#names[@]} = 0 ] ||
    (cd debs && timeout 600 apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=2 -o Acquire::http::Timeout=30 download "${names[@]}")
  compgen -G "debs/linux-image-$kernel.*.deb" > /dev/null || { echo "apt knows no kernel $kernel" >&2; return 1; }
}

# Lists of packages that are missing or old are brought up to date where that is allowed.
fetch || { timeout 300 apt-get -qq update && fetch; }
if [ ! -d system ]; then
  rm -rf system.part
  for package in $packages; do dpkg-deb -x debs/"$package"_*.deb system.part; done
  mv system.part system
fi
