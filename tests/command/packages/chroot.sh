#!/bin/sh
# Run by `cargo xtask package check` inside of a fresh Debian: installs the package, uses it, and holds that a purge leaves nothing.
# Arguments: the package, a capture with losses, the version.
set -eu
deb=$1
capture=$2
version=$3

fail() {
    echo "chroot: $*" >&2
    exit 1
}

# Prints the names of all files, and the users and groups. Caches and logs of other programs are left out.
state() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /check -o -path /root \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path '/var/lib/dpkg/*-old' -o -path '/etc/*-' \
        -o -path /var/lib/dpkg/triggers -o -path /var/lib/dpkg/statoverride \) -prune -o -print | sort
    cat /etc/passwd /etc/group
    dpkg-statoverride --list || true
}

# Prints the capabilities of the program's file.
capabilities() {
    getcap /usr/bin/roce-analyze
}

apt-get update -qq
apt-get satisfy -qq -y --no-install-recommends "$(dpkg-deb --field "$deb" Depends)" > /check/apt.log 2>&1 ||
    fail "its dependencies cannot be installed: $(tail -n 5 /check/apt.log)"
apt-get install -qq -y --no-install-recommends man-db libcap2-bin > /check/apt.log 2>&1 || fail "$(tail -n 5 /check/apt.log)"
state > /check/before

# It depends on nothing else: dpkg installs no dependency.
dpkg -i "$deb" > /check/dpkg.log 2>&1 || fail "dpkg: $(tail -n 5 /check/dpkg.log)"

# The command, as an ordinary user. setpriv itself still has root's capabilities when it starts a program: env has not.
as_nobody() {
    setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs env "$@"
}
[ "$(as_nobody roce-analyze -V)" = "roce-analyze $version" ] || fail "-V: $(roce-analyze -V)"
as_nobody roce-analyze --version > /check/version
for line in "roce-analyze $version" "commit " "features  .*parquet" "libpcap   1\." "sniffer   no"; do
    grep -q "^$line" /check/version || fail "--version has no line '$line': $(cat /check/version)"
done
cd "$(mktemp -d)"
chmod 777 .
as_nobody roce-analyze "$capture" > out || fail "an analysis fails"
grep -q "loss.network: the network lost" out || fail "no finding: $(head -n 5 out)"
as_nobody roce-analyze "$capture" -o results > out || fail "no dataset"
[ -s results/flows.parquet ] || [ -n "$(find results -name '*.parquet')" ] || fail "no Parquet: $(find results)"
as_nobody roce-analyze "$capture" --config /usr/share/doc/roce-analyze/examples/roce-analyze.toml > /dev/null || fail "the example of --config"
as_nobody roce-analyze metrics once > metrics 2> /dev/null || fail "metrics once"
grep -q "^roce_build_info{version=\"$version\"} 1" metrics || fail "no metric of the build"

# Manual pages: of the command, and of each command that its own page names.
man -w roce-analyze > /dev/null || fail "man roce-analyze"
man roce-analyze 2> man.errors | head -n 1 | grep -qi "roce-analyze(1)" || fail "the page: $(cat man.errors)"
for page in roce-analyze-live roce-analyze-metrics-serve roce-analyze-fleet-capture; do
    man -w "$page" > /dev/null || fail "man $page"
done

# Completions: each shell's script asks the program, which answers; bash takes its script.
bash -c '. /usr/share/bash-completion/completions/roce-analyze && complete -p roce-analyze' > /dev/null || fail "completions of bash"
for file in /usr/share/bash-completion/completions/roce-analyze /usr/share/zsh/vendor-completions/_roce-analyze /usr/share/fish/vendor_completions.d/roce-analyze.fish; do
    grep -q ROCE_ANALYZE_COMPLETE "$file" || fail "$file"
done
for shell in bash zsh fish; do
    _CLAP_COMPLETE_INDEX=1 ROCE_ANALYZE_COMPLETE=$shell roce-analyze -- roce-analyze --max-f > completed
    grep -q max-flows completed || fail "$shell: no completion of --max-f"
done

# Documents.
for file in copyright changelog.gz changelog.Debian.gz README.md docs/usage.md docs/install.md third-party-licenses.txt.gz; do
    [ -s "/usr/share/doc/roce-analyze/$file" ] || fail "/usr/share/doc/roce-analyze/$file: $(ls /usr/share/doc/roce-analyze)"
done

# Units: there, understood, and disabled.
units=$(dpkg -L roce-analyze | grep '/systemd/system/.*\.service$')
[ -n "$units" ] || fail "no unit"
for unit in $units; do
    name=${unit##*/}
    case $name in *@.service) continue ;; esac
    [ "$(systemctl is-enabled "$name" 2>&1)" = disabled ] || fail "$name is not disabled: $(systemctl is-enabled "$name" 2>&1)"
    # Lines about this unit: others complain about a system that does not run.
    wrong=$(systemd-analyze verify "$unit" 2>&1 | grep -F "$name" || true)
    [ -z "$wrong" ] || fail "systemd-analyze verify: $wrong"
done
getent passwd roce-analyze | grep -q ':/usr/sbin/nologin$' || fail "no user, or one that can log in: $(getent passwd roce-analyze)"

# No right by itself; capabilities where an administrator limits the program to a group, and again after an upgrade.
[ -z "$(capabilities)" ] || fail "capabilities of a fresh install: $(capabilities)"
groupadd -r capturers
dpkg-statoverride --update --add root capturers 0750 /usr/bin/roce-analyze
for turn in first second; do
    dpkg -i "$deb" > /check/dpkg.log 2>&1 || fail "dpkg again: $(tail -n 5 /check/dpkg.log)"
    case $(capabilities) in
        *cap_net_raw*=p) ;;
        *) fail "capabilities for a group, $turn upgrade: $(capabilities)" ;;
    esac
done
if as_nobody roce-analyze -V > /dev/null 2>&1; then fail "others may execute it"; fi
group=$(getent group capturers | cut -d : -f 3)
setpriv --reuid=65534 --regid="$group" --clear-groups env roce-analyze -V > /dev/null || fail "the group may not execute it"
# Without these capabilities in the bounding set, as in containers, it runs all the same.
setpriv --reuid=65534 --regid="$group" --clear-groups --bounding-set=-all env roce-analyze -V > /dev/null || fail "it does not run without rights"

cd /
dpkg --purge roce-analyze > /check/dpkg.log 2>&1 || fail "purge: $(tail -n 5 /check/dpkg.log)"
groupdel capturers
state > /check/after
diff /check/before /check/after > /check/left || fail "a purge leaves: $(cat /check/left)"
echo "   installed, used and purged: nothing is left"
