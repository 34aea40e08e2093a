# Real programs whose memory is merged, for comparing an estimate with what ksmd then does. To be sourced.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Wants: $B, $work (a folder), $ctl, guard.bash. Leaves in `started` the processes that it began.

here=${BASH_SOURCE%/*}
started=()
files=$work/files
mkdir -p "$files"

# begin COMMAND...: open to merging as a whole, in the background.
begin()
{
	"$ctl" run -- "$@" >>"$work/log" 2>&1 </dev/null 8>&- 9>&- &
	started+=($!)
	disown
}

# preloaded COMMAND...: the same by the preload, which is how it is done without ksmctl.
preloaded()
{
	LD_PRELOAD=$B/libksmreg-preload.so "$@" >>"$work/log" 2>&1 </dev/null 8>&- 9>&- &
	started+=($!)
	disown
}

# These and all that they started, without those that have ended and have no memory any more.
family()
{
	local pid _
	for pid; do
		! read -r _ 2>/dev/null <"/proc/$pid/maps" || echo "$pid"
		# shellcheck disable=SC2046 # numbers
		family $(cat "/proc/$pid/task/"*/children 2>/dev/null)
	done
}

end_all()
{
	local all
	mapfile -t all < <(family "${started[@]}")
	[ ${#all[@]} -eq 0 ] || kill -KILL "${all[@]}" 2>/dev/null
	started=()
}

# ready COUNT SECONDS: so many lines "ready" in the log, and then a moment of rest.
ready()
{
	local end=$((SECONDS + $2))
	until [ "$(grep -cx ready "$work/log")" -ge "$1" ]; do
		[ $SECONDS -lt $end ] || { tail -n 5 "$work/log"; return 1; }
		sleep 0.2
	done
}

# Farm jobs with tables in common, results of their own, and an event that they keep rewriting.
start_jobs()
{
	local i n=${1:-4}
	truncate -s 65536 "$files/report"
	for ((i = 0; i < n; i++)); do
		begin "$B/tests/job" "$i" 5 5<>"$files/report"
	done
	local end=$((SECONDS + 60))
	# The first word of a report becomes 1 when the job is built.
	until [ "$(od -An -v -w40 -N $((40 * n)) -td8 "$files/report" | awk '$1 == 1' | wc -l)" -eq "$n" ]; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}

start_python()
{
	local i n=${1:-6}
	cat >"$files/server.py" <<-'END'
		import http.server, json, decimal, email, xml.dom.minidom, sqlite3, asyncio, unittest, logging, ssl, random, sys
		table = {i: ("item %d" % i, float(i), [i] * 8) for i in range(60000)}
		text = json.dumps(table)
		random.seed(sys.argv[1])
		own = [random.random() for _ in range(100000)]
		server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
		print("ready", flush=True)
		server.serve_forever()
	END
	for ((i = 0; i < n; i++)); do
		PYTHONHASHSEED=0 begin /usr/bin/python3 "$files/server.py" "$i"
	done
	ready "$n" 60
}

start_node()
{
	local i n=${1:-4}
	cat >"$files/server.js" <<-'END'
		const http = require("http");
		const table = [];
		for (let i = 0; i < 200000; i++) table.push({ id: i, name: "item " + i, values: [i, i + 1, i + 2] });
		const blob = Buffer.alloc(16 << 20);
		for (let i = 0; i < blob.length; i += 4) blob.writeUInt32LE(Math.imul(i, 2654435761) >>> 0, i);
		http.createServer((q, r) => r.end(JSON.stringify(table[blob[7]]))).listen(0, "127.0.0.1", () => console.log("ready"));
	END
	for ((i = 0; i < n; i++)); do
		begin node "$files/server.js"
	done
	ready "$n" 60
}

# Three copies of one data set, as replicas hold it.
start_redis()
{
	local i n=${1:-3}
	for ((i = 0; i < n; i++)); do
		begin redis-server --port 0 --unixsocket "$files/redis$i" --save '' --appendonly no --dir "$files" \
			--enable-debug-command yes
	done
	for ((i = 0; i < n; i++)); do
		local end=$((SECONDS + 30))
		until [ "$(redis-cli -s "$files/redis$i" ping 2>&1)" = PONG ]; do
			[ $SECONDS -lt $end ] || return 1
			sleep 0.1
		done
		redis-cli -s "$files/redis$i" debug populate 300000 key 256 >/dev/null || return 1
	done
}

# A server that loads much, then forks: most pages stay shared since the fork, some are written by each.
start_prefork()
{
	cat >"$files/prefork.py" <<-'END'
		import os, time, random
		random.seed(1)
		shared = bytearray(random.randbytes(96 << 20))
		for worker in range(6):
		    if os.fork() == 0:
		        # The same change in each of them: copies with equal content.
		        for page in range(0, 32 << 20, 4096): shared[page] = 7
		        # A change of its own in each of them.
		        for page in range(32 << 20, 48 << 20, 4096): shared[page:page + 8] = worker.to_bytes(8, "little")
		        print("ready", flush=True)
		        while True: time.sleep(1000)
		print("ready", flush=True)
		while True: time.sleep(1000)
	END
	preloaded /usr/bin/python3 "$files/prefork.py"
	ready 7 60
}

start_java()
{
	local i n=${1:-3}
	cat >"$files/Server.java" <<-'END'
		import java.util.*;
		public class Server {
			public static void main(String[] a) throws Exception {
				List<int[]> table = new ArrayList<>();
				Map<String, Integer> names = new TreeMap<>();
				for (int i = 0; i < 20000; i++) { int[] x = new int[512]; Arrays.fill(x, i); table.add(x); names.put("item " + i, i); }
				System.out.println("ready"); System.out.flush();
				while (true) { Thread.sleep(1000000); if (table.size() < names.size()) return; }
			}
		}
	END
	(cd "$files" && javac Server.java) >>"$work/log" 2>&1 || return 1
	for ((i = 0; i < n; i++)); do
		begin java -Xmx256m -XX:+UseSerialGC -cp "$files" Server
	done
	# The compiler and the collector have things to put in order for a while.
	ready "$n" 60 && sleep 5
}

# Two guests with the same kernel and the same files.
start_qemu()
{
	local i n=${1:-2}
	mkdir -p "$files/guest"
	dd if=/dev/urandom of="$files/guest/data" bs=1M count=24 status=none
	"$here/../vm/kernel" 6.12 >/dev/null || return 77
	for ((i = 0; i < n; i++)); do
		begin "$here/../vm/boot" -m 384 -t 170 6.12 "$files/guest" -- \
			sh -c 'cat data data >/dev/null; echo ready; sleep 150'
	done
	ready "$n" 100
}
