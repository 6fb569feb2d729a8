#!/bin/sh
# The guest's only program: makes what tests expect of a system, runs them, says how it ended, and powers off.
export PATH=/usr/bin:/bin:/sbin HOME=/root
for folder in /tmp /run /var/lib /var/log; do
    mount -t tmpfs tmp $folder
done
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs trace /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
# Elsewhere udev makes the node from what modules say of themselves, before anything has loaded the module.
modprobe tun
[ -e /dev/net/tun ] || { mkdir -p /dev/net && mknod /dev/net/tun c 10 200; }
ip link set lo up
# Tunnel drivers put a device of their own into every new namespace otherwise, which Debian's systems do too, but which
# appear whenever a test happens to be the first that makes a tunnel.
echo 1 > /proc/sys/net/core/fb_tunnels_only_for_init_net

word() {
    sed -n "s/.*flowlog\.$1=\([^ ]*\).*/\1/p" /proc/cmdline | tr , ' '
}
export FLOWLOG_BIN=/flowlog/flowlog FLOWLOG_EBPF_OBJECT=/flowlog/flowlog-ebpf.o FLOWLOG_WIRE=/flowlog/wire FLOWLOG_EMULATED=1 RUST_BACKTRACE=0
FLOWLOG_HOOK=$(word hook)
export FLOWLOG_HOOK
case " $(word tests) " in *--include-ignored*) export FLOWLOG_TEST_LONG=1 ;; esac
cd /flowlog || exit
echo "guest: $(uname -r) is up" > /dev/ttyS1
# Each test's own words come when it says them: all of them take an hour or more. Word by word.
# shellcheck disable=SC2046
./tests --test-threads 1 --nocapture $(word tests) < /dev/null > /dev/ttyS1 2>&1
echo "guest: the tests ended with $?" > /dev/ttyS1
poweroff -f
