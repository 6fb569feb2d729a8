#!/bin/busybox sh
# The first program of a guest: finds the disk and goes there.
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
for module in /modules/*.ko; do
    [ -e "$module" ] && $b insmod "$module"
done
$b mount -t ext4 /dev/vda /new || { echo "the guest's disk is not there"; $b poweroff -f; }
for folder in dev proc sys; do
    $b mount --move /$folder /new/$folder
done
exec $b switch_root /new /flowlog/init
