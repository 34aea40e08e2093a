#!/bin/bash
# The monitoring set: rules, units and manifests, then a real Prometheus that sees merged pages, alerts and every query.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/monitoring.sh, as root, after `make tests` and `.ci/deps monitor`. Prints TAP.
# shellcheck disable=SC2154,SC2016 # ksm is set in guard.bash; what is quoted is meant so
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
. tests/live/scene.bash

B=$(realpath "${B:-build}")
set=docs/monitoring
n=0 bad=0
mib=1048576
servers=()

skip_all()
{
	echo "1..1"
	echo "ok 1 - monitoring # SKIP $1"
	exit 0
}
# nothing TEXT NAME: what is told is a problem.
nothing()
{
	n=$((n + 1))
	if [ -z "$1" ]; then
		echo "ok $n - $2"
	else
		bad=$((bad + 1))
		echo "not ok $n - $2"
		sed 's/^/# /' <<<"$1"
	fi
}
skip()
{
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
finish()
{
	echo "1..$n"
	exit $((bad > 0))
}

for program in promtool prometheus prometheus-node-exporter curl jq; do
	command -v $program >/dev/null || skip_all "$program is not installed: make check-monitoring installs it"
done
python3 -c 'import yaml' 2>/dev/null || skip_all 'python3-yaml is not installed: make check-monitoring installs it'
work=$(mktemp -d)
leave()
{
	local server
	let_go
	for server in "${servers[@]}"; do kill "$server" 2>/dev/null; done
	wait "${servers[@]}" 2>/dev/null
	rm -rf "$work"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

# --- what lies there
nothing "$(promtool check rules $set/ksm-alerts.yml 2>&1 | grep -v 'Checking\|SUCCESS\|^$')" 'the alerts are valid'
cp $set/ksm-alerts.yml tests/live/monitoring_alerts.yml "$work"
nothing "$(promtool test rules "$work/monitoring_alerts.yml" 2>&1 | grep -v 'Unit Testing\|SUCCESS\|^$')" 'each alert fires where it should and nowhere else'
grep -o 'alert: [A-Za-z]*' $set/ksm-alerts.yml | sort >"$work/alerts"
grep -B0 -A1 'alertname: [A-Za-z]*$' tests/live/monitoring_alerts.yml | sed -n 's/.*alertname/alert/p' | sort >"$work/tried"
nothing "$(diff "$work/alerts" "$work/tried")" 'and each is tried'
nothing "$(python3 - $set/*.yml <<'EOF' 2>&1
import os, sys, yaml

for name in sys.argv[1:]:
    for part in yaml.safe_load_all(open(name)):
        if name.endswith("daemonset.yml"):
            pod = part["spec"]["template"]["spec"]
            volumes = {v["name"]: v["hostPath"]["path"] for v in pod["volumes"]}
            ctl = next(c for c in pod["containers"] if c["command"][0] == "ksmctl")
            knobs = [m for m in ctl["volumeMounts"] if volumes[m["name"]] == "/sys/kernel/mm/ksm"]
            if part["kind"] != "DaemonSet" or not pod["hostPID"]:
                print(name, "is no DaemonSet that sees processes")
            if len(knobs) != 1 or knobs[0].get("readOnly") or knobs[0]["mountPath"] != "/sys/kernel/mm/ksm":
                print(name, "has no writable knobs")
        if name.endswith("ansible.yml"):
            for task in part[0]["tasks"]:
                if len([key for key in task if key.startswith("ansible.builtin.")]) != 1:
                    print(name, "has an odd task:", task)
                for item in task.get("loop", []):
                    if "ansible.builtin.copy" in task and not os.path.exists(os.path.join(os.path.dirname(name), item)):
                        print(name, "copies", item, "that is not there")
EOF
)" 'the manifests are valid YAML, and say what they should'
if command -v systemd-analyze >/dev/null; then
	mkdir "$work/units"
	sed "s|/usr/local/bin/|$B/|; s|/usr/local/lib/ksm/|$PWD/$set/|" $set/ksmstat-prom.service >"$work/units/ksmstat-prom.service"
	cp $set/ksmstat-prom.timer "$work/units/"
	nothing "$(systemd-analyze verify "$work/units/"* 2>&1 | grep -v "Command 'man ")" 'the units are valid'
	score=$(systemd-analyze security --offline=true "$work/units/ksmstat-prom.service" 2>&1 | sed -n 's/.*exposure level.*: \([0-9.]*\) .*/\1/p')
	[ -z "$score" ] || nothing "$(awk -v s="$score" 'BEGIN { if (s > 2.5) print "exposure " s }')" "the unit's exposure is 2.5 at most"
else
	skip 'the units are valid' 'systemd-analyze is not installed'
fi

# --- the real thing
if [ "$(id -u)" != 0 ] || [ ! -w $ksm/run ] || ! command -v setpriv >/dev/null; then
	skip 'a real Prometheus' 'needs root, KSM and setpriv'
	finish
fi
mkdir "$work/textfile"
read -r exporter_port port < <(python3 -c '
import socket
s = [socket.socket() for _ in "ab"]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])')
cat >"$work/prometheus.yml" <<EOF
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [$PWD/$set/ksm-alerts.yml]
scrape_configs:
  - job_name: node
    static_configs: [{ targets: ["127.0.0.1:$exporter_port"] }]
EOF
serve() { "$@" >>"$work/log" 2>&1 </dev/null & servers+=($!); }
serve prometheus-node-exporter --web.listen-address="127.0.0.1:$exporter_port" --collector.disable-defaults --collector.ksmd \
	--collector.textfile --collector.textfile.directory="$work/textfile"
serve prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" --web.listen-address="127.0.0.1:$port"

# As the unit starts it: its commands, with no more than its privileges.
caps=$(sed -n 's/^CapabilityBoundingSet=//p' $set/ksmstat-prom.service | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
sed -n 's/^ExecStart=-\{0,1\}//p' $set/ksmstat-prom.service | sed "s|/usr/local/bin/|$B/|; s|/usr/local/lib/ksm/|$PWD/$set/|
	s|/var/lib/prometheus/node-exporter|$work/textfile|; s|ksmctl[.]prom|& -c $work/conf|" >"$work/commands"
as_unit()
{
	local command problem=
	while read -r command; do
		# shellcheck disable=SC2086 # words
		PATH=$B:$PATH setpriv --bounding-set "-all,$caps" --inh-caps=-all --no-new-privs -- $command 2>&1 || problem=failed
	done <"$work/commands"
	[ -z "$problem" ]
}
api() { curl -sS --max-time 5 -G "http://127.0.0.1:$port/api/v1/$1" "${@:2}" 2>&1; }
value() { api query --data-urlencode "query=$1" | jq -r '.data.result[0].value[1] // empty' 2>/dev/null; }
# until_true SECONDS EXPRESSION NAME: that Prometheus finds it, as the metrics are written again and again.
until_true()
{
	local end=$((SECONDS + $1))
	until [ -n "$(value "$2")" ]; do
		[ $SECONDS -lt $end ] || { nothing "after $1 s not yet: $2; $(api query --data-urlencode "query={__name__=~\"ksm_.*\",user=\"\"}" |
			jq -r '.data.result[] | "\(.metric) \(.value[1])"' | head -n 30)" "$3"; return; }
		as_unit >>"$work/log"
		sleep 1
	done
	nothing '' "$3"
}
ready() { curl -sf --max-time 2 "http://127.0.0.1:$port/-/ready" >/dev/null; }
for _ in {1..300}; do ! ready || break; sleep 0.1; done
printf 'state-dir = %s\n' "$work/state" >"$work/conf"
nothing "$(as_unit)" "the unit's commands work with the unit's privileges"
nothing "$(cat "$work"/textfile/*.prom | promtool check metrics 2>&1)" 'what they write is good (promtool)'
until_true 20 'ksm_controller_up == 0' 'no service runs'

take
before=$(knobs)
guard
"$B/ksmctl" unmerge >/dev/null 2>&1
mkdir "$work/bin" && cp "$B/tests/scene" "$work/bin/" && chmod -R a+rX "$work"
hold "$work/bin/scene" equal 32 || nothing 'it did not' 'a scene starts'
hold setpriv --reuid=65534 --clear-groups -- "$work/bin/scene" equal 32 || nothing 'it did not' 'a scene of another user starts'
"$B/ksmctl" daemon -c "$work/conf" >>"$work/log" 2>&1 </dev/null 8>&- 9>&- &
servers+=($!)
daemon=$!
# Other programs of this machine may have offered memory too.
until_true 60 "ksm_saved_bytes > $((31 * mib))" 'Prometheus sees what merging saves'
until_true 30 'count(ksm_controller_phase == 1) == 1 and on () ksm_controller_up == 1' 'and what the service does'
until_true 30 'abs(sum(ksm_user_saved_bytes) / sum(ksm_sharing_bytes) - 1) < 0.1' 'what users save adds up to it'
nobody=$(getent passwd 65534 | cut -d: -f1)
until_true 10 "abs(ksm_user_saved_bytes{user=\"${nobody:-65534}\"} / $((16 * mib)) - 1) < 0.02" 'half of it is the share of the other user'
until_true 10 "node_ksmd_pages_sharing * $(getconf PAGESIZE) == ksm_sharing_bytes" "node_exporter's own collector says the same, under another name"
until_true 10 'rate(ksm_ksmd_cpu_seconds_total[1m]) > 0' 'ksmd has used CPU time'
until_true 10 'count(up == 1) == 1 and on () node_textfile_scrape_error == 0' 'node_exporter takes the files'

# The boards' own variables, as Grafana fills them in.
queries=0 problem=
while IFS= read -r query; do
	queries=$((queries + 1))
	query=${query//'$instance'/.*} query=${query//'$__rate_interval'/30s}
	answer=$(api query --data-urlencode "query=$query")
	[ "$(jq '.data.result | length > 0' <<<"$answer" 2>/dev/null)" = true ] || problem+="$query: $answer"$'\n'
done < <(jq -r '.panels[].targets[].expr' $set/ksm-dashboard.json)
[ "$queries" -gt 10 ] || problem+="$queries queries only"
nothing "$problem" "each of the $queries queries of the board has data"
nothing "$(jq -r '[.panels[].id] | if length == (unique | length) then empty else "panels with one id" end' $set/ksm-dashboard.json)" 'the board has a number for each panel'
rules=$(api rules)
nothing "$(jq -r '[.data.groups[].rules[]] | if length == '"$(wc -l <"$work/alerts")"' then .[] | select(.health != "ok") | "\(.name): \(.health) \(.lastError)"
	else "\(length) rules" end' <<<"$rules" 2>&1)" 'Prometheus evaluates all alerts'
nothing "$(api query --data-urlencode 'query=ALERTS{alertname=~"Ksm(Foreign|Controller|Metrics).*"}' | jq -r '.data.result[].metric.alertname')" 'none of those is up that are about what this test does'

# Somebody else writes to the kernel.
echo 77 >$ksm/sleep_millisecs
echo 77 >$ksm/pages_to_scan
until_true 90 'ALERTS{alertname="KsmForeignController"}' 'another controller is noticed'
kill "$daemon" && wait "$daemon" 2>/dev/null
until_true 30 'ksm_controller_up == 0 unless on () ksm_controller_phase' 'the service has ended'

let_go
"$B/ksmctl" unmerge >/dev/null 2>&1
put_back "$before"
nothing "$(as_found "$before")" 'the knobs are as before'
release
finish
