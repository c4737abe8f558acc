#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The number of writeback contexts of a block device: its default, what it
# refuses, and a change below a mounted filesystem. Uses a null_blk device of
# its own.

DIR="$(dirname "$(readlink -f "$0")")"

. "$DIR"/../kselftest/ktap_helpers.sh

NAME="wbctx$$"
CPUS=/sys/devices/system/cpu
NULLB=/sys/kernel/config/nullb
BDI=/sys/block/$NAME/bdi
NWRITEBACKS=$BDI/nwritebacks
# As many contexts as a machine with one CPU may have
MOST_USED=4
FILES_PER_STEP=8

work=
loaded=

skip_all()
{
	ktap_skip_all "$@"
	exit "$KSFT_SKIP"
}

cleanup()
{
	if [ -n "$work" ]; then
		mountpoint -q "$work/mnt" && umount "$work/mnt"
		rm -rf "$work"
	fi
	if [ -d "$NULLB/$NAME" ]; then
		echo 0 > "$NULLB/$NAME/power"
		rmdir "$NULLB/$NAME"
	fi
	[ -z "$loaded" ] || modprobe -q -r null_blk 2>/dev/null
}

# A list of CPUs such as 0-3,6
count_cpus()
{
	count=0
	for range in $(tr ',' ' ' < "$1"); do
		count=$((count + ${range#*-} - ${range%-*} + 1))
	done
	echo "$count"
}

make_device()
{
	mkdir "$NULLB/$NAME" &&
		echo 64 > "$NULLB/$NAME/size" &&
		echo 1 > "$NULLB/$NAME/memory_backed" &&
		echo 1 > "$NULLB/$NAME/power" &&
		[ -b "/dev/$NAME" ]
}

has_value()
{
	[ "$(cat "$NWRITEBACKS")" = "$1" ]
}

takes()
{
	{ echo "$1" > "$NWRITEBACKS"; } 2>/dev/null && has_value "$1"
}

refuses()
{
	before=$(cat "$NWRITEBACKS")
	printf '%s\n' "$1" | LC_ALL=C tee "$NWRITEBACKS" 2>&1 >/dev/null |
		grep -q 'Invalid argument' && has_value "$before"
}

# Files of one directory may belong together for the filesystem; their numbers
# spread over all contexts.
spread_by_number()
{
	[ ! -e "$BDI/wb_affinity" ] || echo ino > "$BDI/wb_affinity"
}

# The checksum is of what is written, not of what the page cache holds.
write_file()
{
	head -c 65536 /dev/urandom > "$work/data" &&
		cksum < "$work/data" > "$work/sums/$1" &&
		dd if="$work/data" of="$work/mnt/$1" bs=64k conv=notrunc 2>/dev/null
}

# New files, and new content for some of those of the step before: what is
# dirty in a context when the number changes becomes dirty again.
write_step()
{
	i=0
	while [ "$i" -lt "$FILES_PER_STEP" ]; do
		write_file "$1-$i" || return 1
		if [ -n "$2" ] && [ $((i % 2)) -eq 0 ]; then
			write_file "$2-$i" || return 1
		fi
		i=$((i + 1))
	done
}

change_while_mounted()
{
	last=
	for nr in 2 "$MOST_USED" 1 3; do
		takes "$nr" || return 1
		write_step "$nr" "$last" || return 1
		last=$nr
	done
	sync
}

every_context_flushed()
{
	i=0
	while [ "$i" -lt "$MOST_USED" ]; do
		grep -q "^Context $i: .* flushed [1-9]" "$stats" || return 1
		i=$((i + 1))
	done
}

as_written()
{
	umount "$work/mnt" || return 1
	mount -t ext4 "/dev/$NAME" "$work/mnt" || return 1
	for sum in "$work"/sums/*; do
		cksum < "$work/mnt/${sum##*/}" | cmp -s - "$sum" || return 1
	done
}

ktap_print_header

[ "$(id -u)" -eq 0 ] || skip_all "needs root"
command -v mkfs.ext4 >/dev/null || skip_all "needs mkfs.ext4"
if [ ! -d "$NULLB" ]; then
	modprobe -q null_blk nr_devices=0 2>/dev/null && loaded=1
fi

trap cleanup EXIT
trap 'exit 1' HUP INT TERM

[ -d "$NULLB" ] || skip_all "needs null_blk with configfs"
make_device || skip_all "null_blk makes no device"
[ -e "$NWRITEBACKS" ] || skip_all "needs nwritebacks in $BDI"

most=$((4 * $(count_cpus "$CPUS/possible")))
stats=/sys/kernel/debug/bdi/$(cat "/sys/block/$NAME/dev")/stats
if ! work=$(mktemp -d) || ! mkdir "$work/mnt" "$work/sums"; then
	ktap_exit_fail_msg "no temporary directory"
fi

ktap_set_plan 12

ktap_test_result "default is one" has_value 1

ktap_test_result "1 is taken" takes 1
ktap_test_result "$most is taken" takes "$most"
takes 3
for value in 0 -1 text "" $((most + 1)) 4294967297; do
	ktap_test_result "'$value' is refused" refuses "$value"
done

if ! mkfs.ext4 -q -F "/dev/$NAME" ||
   ! mount -t ext4 "/dev/$NAME" "$work/mnt"; then
	ktap_exit_fail_msg "no ext4 on $NAME"
fi

spread_by_number
ktap_test_result "number changes while mounted" change_while_mounted
if [ -r "$stats" ]; then
	ktap_test_result "every context has flushed" every_context_flushed
else
	ktap_test_skip "every context has flushed: needs debugfs"
fi
ktap_test_result "files are as written" as_written

ktap_finished
