#!/usr/bin/env bash
# image.sh FOLDER KERNEL [PROGRAM]: makes what the VM boots, FOLDER/KERNEL/vmlinuz and FOLDER/KERNEL/initrd.
#
# Everything in it comes from the packages that packages.sh has fetched into FOLDER. Of PROGRAM, which the VM finds in its shared
# folder, only the libraries are taken along.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
kernel=$2 program=${3-}
work=$PWD system=$PWD/system root=$PWD/$kernel/root

rm -rf "$kernel" && mkdir -p "$kernel"
dpkg-deb -x "$(ls -v debs/linux-image-"$kernel".*.deb | tail -1)" "$kernel/image"
version=$(ls "$kernel/image/lib/modules")
cp "$kernel/image/boot/vmlinuz-$version" "$kernel/vmlinuz"

# Where the packages have a program.
unpacked() { find "$system" -type f -path "*bin/$1" | head -1; }

mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib64,etc/libibverbs.d,proc,sys,dev,tmp,run,root,mnt}
ln -s usr/bin "$root/bin" && ln -s usr/sbin "$root/sbin" && ln -s usr/lib "$root/lib" && ln -s usr/lib64 "$root/lib64"
multiarch=$(cd system/usr/lib && ls -d *-linux-gnu)
libraries=$system/usr/lib/$multiarch:$system/lib/$multiarch
for name in busybox bash ip tc tcpdump rdma rping ib_write_bw ib_send_bw ib_read_bw; do cp "$(unpacked $name)" "$root/usr/bin/"; done
# The verbs library finds its driver by this file, in a folder of a fixed name.
cp system/etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
mkdir -p "$root/usr/lib/$multiarch/libibverbs"
cp system/usr/lib/"$multiarch"/libibverbs/librxe-*.so "$root/usr/lib/$multiarch/libibverbs/"

needed=$(for file in "$root"/usr/bin/* "$root/usr/lib/$multiarch"/libibverbs/*.so ${program:+"$program"}; do
  LD_LIBRARY_PATH=$libraries ldd "$file" 2> /dev/null || true
done)
if grep -q 'not found' <<< "$needed"; then
  echo "libraries that no package brought: $(grep 'not found' <<< "$needed" | awk '{ print $1 }' | sort -u | xargs)" >&2
  exit 1
fi
awk '/=> \// { print $3 }' <<< "$needed" | sort -u | xargs -I{} cp -L {} "$root/usr/lib/$multiarch/"
cp -L /lib64/ld-linux-x86-64.so.2 "$root/usr/lib64/"

# kmod is what its name is. The modules, with those that they need.
kmod() { (name=$1; shift; export LD_LIBRARY_PATH=$libraries; exec -a "$name" "$(unpacked kmod)" "$@"); }
modules="virtio_pci virtio_rng 9p 9pnet_virtio veth ib_core ib_uverbs rdma_cm rdma_ucm rdma_rxe sch_red sch_netem sch_tbf sch_prio sch_ingress
  act_mirred cls_matchall cls_u32 cls_bpf crc32_generic crc32_pclmul"
kmod depmod -b "$kernel/image" "$version"
for module in $modules; do
  kmod modprobe -d "$work/$kernel/image" -S "$version" --show-depends "$module" 2> /dev/null || true
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
  to=$root/lib/modules/$version/${file#*/lib/modules/"$version"/}
  mkdir -p "$(dirname "$to")"
  cp "$file" "$to"
  case $to in *.xz) "$(unpacked busybox)" unxz "$to" ;; esac
done
cp "$kernel/image/lib/modules/$version"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$version/"
kmod depmod -b "$root" "$version"

cp "$here/init" "$root/init" && chmod +x "$root/init"
(cd "$root" && find . | "$(unpacked busybox)" cpio -o -H newc 2> /dev/null | gzip -1) > "$kernel/initrd"
rm -rf "$kernel/image" "$root"
