#!/usr/bin/env bash
# Makes a Rust toolchain for BPF from Debian's packages, for machines where rustup can download no nightly:
# rustc-web with its sources, unpacked beside the system, and bpf-linker built against Debian's libLLVM.
# usage: toolchain-debian.sh FOLDER     (apt-get with fresh lists, dpkg, rustup's stable cargo, a registry of crates)
set -euo pipefail
folder=$(realpath -m "${1:?usage: toolchain-debian.sh FOLDER}")
rust=1.96
llvm=22

mkdir -p "$folder"/{debs,unpacked,bin,lib/rustlib/src/rust}
cd "$folder/debs"
packages=("rustc-web" "libstd-rust-web-$rust" "libstd-rust-web-dev" "rust-web-src" "libllvm$llvm")
apt-get -qq download "${packages[@]}" || { apt-get -qq update && apt-get -qq download "${packages[@]}"; }
for package in *.deb; do dpkg -x "$package" "$folder/unpacked"; done

cd "$folder"
cp -a unpacked/usr/bin/rustc bin/
# Debian's own cargo needs libraries that are not there; any cargo will do.
ln -sfn "$(rustup which --toolchain stable cargo)" bin/cargo
cp -a unpacked/usr/lib/x86_64-linux-gnu/librustc_driver-*.so lib/
cp -aL "unpacked/usr/lib/x86_64-linux-gnu/libLLVM.so.$llvm.1" lib/ 2>/dev/null ||
    cp -aL "unpacked/usr/lib/llvm-$llvm/lib/libLLVM.so.$llvm.1" lib/
# All that bpf-linker needs of LLVM.
ln -sfn "libLLVM.so.$llvm.1" lib/libLLVM.so
cp -a unpacked/usr/lib/rustlib/x86_64-unknown-linux-gnu lib/rustlib/
cp -a unpacked/usr/src/rustc-*/library lib/rustlib/src/rust/
rm -rf unpacked debs

LLVM_PREFIX=$folder cargo install --quiet --locked --version 0.13.0 --no-default-features --features "llvm-$llvm" \
    --root "$folder" --target-dir "$folder/build" bpf-linker
rm -rf build
LD_LIBRARY_PATH=$folder/lib bin/rustc --version
bin/bpf-linker --version
