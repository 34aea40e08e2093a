#!/bin/bash
# `make install` puts everything below DESTDIR, what it installs works, `make uninstall` takes it away.
# SPDX-License-Identifier: GPL-2.0-or-later
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0 code=0
B=${B:-build}
export MAKEFLAGS=

ok() { # NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$dir/out" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$dir/out"
		code=1
	fi
}
absent() { ! [ -e "$1" ]; }
nothing_left() { ! find "$dir/root" ! -type d | grep .; }

ok "install" make B="$B" DESTDIR="$dir/root" PREFIX=/opt/ksm install
for file in opt/ksm/sbin/ksmctl opt/ksm/bin/ksmstat opt/ksm/lib/libksmreg.so opt/ksm/lib/libksmreg-preload.so \
	opt/ksm/include/ksmreg.h opt/ksm/lib/pkgconfig/ksmreg.pc opt/ksm/share/man/man8/ksmctl.8 \
	opt/ksm/share/bash-completion/completions/ksmctl opt/ksm/share/bash-completion/completions/ksmstat \
	opt/ksm/share/zsh/site-functions/_ksmctl opt/ksm/lib/systemd/system/ksmctl.service etc/ksmctl.conf; do
	ok "installs $file" test -s "$dir/root/$file"
done
ok "the service names the installed program" \
	grep -q '^ExecStart=/opt/ksm/sbin/ksmctl daemon' "$dir/root/opt/ksm/lib/systemd/system/ksmctl.service"
ok "the installed example configuration is valid" \
	"$dir/root/opt/ksm/sbin/ksmctl" daemon --check -c "$dir/root/etc/ksmctl.conf"
printf '#include <ksmreg.h>\nint main(void) { return ksmreg_register(0, 0) != 0; }\n' >"$dir/t.c"
ok "a program builds with pkg-config's answer" sh -c "PKG_CONFIG_SYSROOT_DIR='$dir/root' \
	PKG_CONFIG_PATH='$dir/root/opt/ksm/lib/pkgconfig' && export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH && \
	${CC:-cc} ${SANITIZE:-} -o '$dir/t' '$dir/t.c' \$(pkg-config --cflags --libs ksmreg)"
echo "# changed" >>"$dir/root/etc/ksmctl.conf"
ok "installing again keeps a changed configuration" sh -c "make B='$B' DESTDIR='$dir/root' PREFIX=/opt/ksm install &&
	grep -q '^# changed' '$dir/root/etc/ksmctl.conf'"
ok "uninstall keeps it too" sh -c "make B='$B' DESTDIR='$dir/root' PREFIX=/opt/ksm uninstall &&
	test -e '$dir/root/etc/ksmctl.conf'"
rm "$dir/root/etc/ksmctl.conf"
ok "and nothing else is left" nothing_left
echo "1..$n"
exit $code
