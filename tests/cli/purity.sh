#!/bin/bash
# The policy is a pure function: its object file calls nothing but mem* and the compiler's own helpers.
# SPDX-License-Identifier: GPL-2.0-or-later
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

if ! ${CC:-cc} -std=gnu11 -O2 -fno-pie -I. -r -nostdlib -o "$dir/policy.o" ksmctl/policy.c ksmctl/rate.c ksmctl/policy_text.c; then
	echo "not ok 1 - ksmctl/policy.c compiles by itself"
	echo "1..1"
	exit 1
fi
called=$(nm -u "$dir/policy.o" | awk '{print $2}' | grep -Ev '^(mem(set|cpy|move|cmp)|__u?divti3|_GLOBAL_OFFSET_TABLE_)$')
# Memory of its own would be state that no simulation sees.
owned=$(nm "$dir/policy.o" | awk '$2 ~ /^[bBdDC]$/ {print $3}')
code=0
if [ -z "$called" ]; then
	echo "ok 1 - policy.o calls nothing"
else
	echo "not ok 1 - policy.o calls: $called"
	code=1
fi
if [ -z "$owned" ]; then
	echo "ok 2 - policy.o has no variable of its own"
else
	echo "not ok 2 - policy.o has variables: $owned"
	code=1
fi
echo "1..2"
exit $code
