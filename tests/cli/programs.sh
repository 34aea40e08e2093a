#!/bin/bash
# Real programs do the same with the preload as without it: output, exit code, and no word on stderr.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # work and B are of lib.bash; what is quoted is meant so
. "${BASH_SOURCE%/*}/lib.bash"
cd "${BASH_SOURCE%/*}/../.." || exit 1

preload=$(realpath "$B")/libksmreg-preload.so
if nm -D -u "$preload" | grep -q '__asan_\|__tsan_'; then
	skip 'programs with the preload' "a sanitizer's runtime must come before any preload"
	finish
fi

# under HOW COMMAND...: what it prints and how it ends; HOW is "" for without the preload, glibc for the
# object that stands in front of malloc.
under()
{
	local how=$1
	shift
	(
		case $how in
		'') ;;
		glibc) export LD_PRELOAD=${preload%-*}-glibc.so ;;
		*) export LD_PRELOAD=$preload KSMREG=$how ;;
		esac
		timeout 60 "$@" </dev/null 2>&1
		echo "exit code $?"
	)
}

# is GOT WANTED NAME
is() { verdict "$([ "$1" = "$2" ] || echo "wanted '$2', got '$1'")" "$3"; }

# alike NAME NEEDED COMMAND...: NEEDED is the program that must be there.
alike()
{
	local name=$1 needed=$2 how problem=
	shift 2
	if ! command -v "$needed" >/dev/null; then
		skip "$name" "$needed is not installed"
		return
	fi
	under '' "$@" >"$work/without"
	# A program that fails by itself shows nothing.
	grep -qx 'exit code 0' "$work/without" || problem="fails without the preload: $(tail -n 3 "$work/without")"
	for how in auto prctl madvise glibc; do
		under $how "$@" >"$work/with"
		cmp -s "$work/without" "$work/with" ||
			problem+="KSMREG=$how: $(diff "$work/without" "$work/with" | head -n 3)"
	done
	verdict "$problem" "$name"
}

cat >"$work/words.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	char **kept = calloc(100000, sizeof(*kept));
	unsigned long sum = 0;
	for (int i = 0; i < 100000; i++) {
		kept[i] = malloc(10 + i % 3000);
		snprintf(kept[i], 10, "%d", i);
		if (i % 3 == 0) {
			free(kept[i / 2]);
			kept[i / 2] = NULL;
		}
	}
	for (int i = 0; i < 100000; i++)
		sum = sum * 31 + (kept[i] ? strtoul(kept[i], NULL, 10) : 1);
	printf("%lu\n", sum);
	return 0;
}
END
cat >"$work/threads.py" <<'END'
import json, re, threading, zlib
out = [None] * 8
def work(n):
    data = [{"id": i, "text": "x" * (i % 500)} for i in range(3000)]
    text = json.dumps(data)
    out[n] = (len(text), zlib.crc32(text.encode()), len(re.findall("xx+", text)))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(out)
END
cat >"$work/forks.py" <<'END'
import os, subprocess
total = 0
for n in range(20):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(w, str(sum(range(n * 1000))).encode())
        os._exit(n)
    total += int(os.read(r, 100)) + os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(r)
    os.close(w)
print(total, subprocess.run(["/bin/echo", "child"], capture_output=True).stdout)
END
cat >"$work/query.sql" <<'END'
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000)
INSERT INTO t SELECT x, printf('%08d', x * 7919 % 50021) FROM c;
CREATE INDEX i ON t(b);
SELECT count(*), sum(a), min(b), max(b) FROM t WHERE b > '00010000';
END
printf 'echo "$0 $$" >/dev/null; for i in 1 2 3; do (echo $i | tr 1 2); done; exit 0' >"$work/script"

serve_redis()
{
	local socket=$1/redis.$RANDOM said
	redis-server --port 0 --unixsocket "$socket" --save '' --daemonize no >/dev/null 2>&1 &
	for _ in {1..100}; do [ -S "$socket" ] && break; sleep 0.05; done
	for i in {1..50}; do echo "SET key$i $(printf 'v%.0s' {1..200})"; done |
		env -u LD_PRELOAD redis-cli -s "$socket" | sort | uniq -c
	said=$(env -u LD_PRELOAD redis-cli -s "$socket" GET key7)
	echo "${#said}"
	env -u LD_PRELOAD redis-cli -s "$socket" SHUTDOWN NOSAVE
	wait $!
}
export -f serve_redis

alike 'the shell' bash bash "$work/script"
alike 'sort, with threads' sort sh -c 'seq 300000 -1 1 | sort -n --parallel=4 -S 4M | cksum'
alike 'gzip and tar' gzip sh -c 'tar cf - --sort=name --mtime=@0 --owner=0 --group=0 docs | gzip -n | cksum'
alike 'perl' perl perl -e 'my %h; $h{$_ % 997} .= $_ for 1 .. 200000; print join(",", map { length $h{$_} } sort keys %h), "\n"'
alike 'awk' awk awk 'BEGIN { for (i = 0; i < 200000; i++) a[i % 1000] = a[i % 1000] "x"; n = 0; for (k in a) n += length(a[k]); print n }'
alike 'a compiler' cc sh -c "cc -O1 -o $work/words $work/words.c && $work/words"
alike 'malloc in many sizes' cc "$work/words"
alike 'python, threads' python3 python3 "$work/threads.py"
alike 'python, forks' python3 python3 "$work/forks.py"
alike 'sqlite' sqlite3 sqlite3 :memory: ".read $work/query.sql"
alike 'redis' redis-server bash -c "serve_redis $work"
alike 'GraphicsMagick' gm sh -c "gm convert -size 300x200 plasma:fractal -seed 1 +noise Gaussian $work/a.ppm 2>/dev/null;
	gm convert -size 320x240 tile:logo: -wave 5x30 ppm:- 2>/dev/null | cksum"
alike 'node' node node -e 'let m = new Map(); for (let i = 0; i < 1e5; i++) m.set("k" + i % 999, JSON.stringify({ i })); console.log([...m.values()].join().length)'
alike 'env that cleans up' env env -i PATH="$PATH" sh -c 'echo $LD_PRELOAD; true'
musl-gcc -static -o "$work/static" "$work/words.c" 2>/dev/null
alike 'a static program' "$work/static" "$work/static"

# --- with privileges of its own: nothing at all is done
cat >"$work/opted.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
int main(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/smaps", "r");
	int found = 0;
	while (f && fgets(line, sizeof(line), f))
		found |= !strncmp(line, "VmFlags:", 8) && strstr(line, " mg");
	printf("secure %lu mergeable %d\n", getauxval(AT_SECURE), found);
	return 0;
}
END
cc -o "$work/opted" "$work/opted.c"
chmod 755 "$work"
if [ "$(id -u)" != 0 ]; then
	skip 'a set-uid program' 'only root can make one'
else
	mkdir -p "$work/lib"
	cp "$work/opted" "$work/setuid" && chown nobody "$work/setuid" && chmod 4755 "$work/setuid"
	got=$(LD_PRELOAD=$preload KSMREG=prctl "$work/setuid")
	is "$got" 'secure 1 mergeable 0' 'a set-uid program is left alone'
	got=$(LD_PRELOAD=$preload KSMREG=madvise "$work/opted")
	is "${got%% m*}" 'secure 0' 'another is not'
fi

# --- children
got=$(LD_PRELOAD=$preload KSMREG=prctl KSMREG_CHILDREN=0 sh -c "$work/opted; exec $work/opted" | tr '\n' ' ')
case $(LD_PRELOAD=$preload KSMREG=prctl "$work/opted") in
*'mergeable 1') is "$got" 'secure 0 mergeable 0 secure 0 mergeable 1 ' 'KSMREG_CHILDREN=0: not the child, but what the program becomes' ;;
*) skip 'KSMREG_CHILDREN=0' 'no PR_SET_MEMORY_MERGE in this kernel' ;;
esac
finish
