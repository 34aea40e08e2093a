# Builds, tests, shows and installs the toolkit. `make help` lists what there is to make.
B ?= build
O := $B/obj
PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
PKGDIR ?= $(LIBDIR)/pkgconfig
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
SYSCONFDIR ?= /etc
VERSION := 0.1.0
SOVERSION := 0

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
	-Wwrite-strings -Wformat=2 -Wundef -Wimplicit-fallthrough
WERROR ?= $(if $(wildcard .git),-Werror)
BASE := -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DKSM_VERSION='"$(VERSION)"' -fvisibility=hidden
ALL_CFLAGS = $(BASE) -I. $(WARN) $(WERROR) -MMD -MP $(CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS = -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS)
Q := $(if $V,,@)
SAY := $(if $V,@:,@echo "  ")
pkg = $(shell pkg-config --$(1) $(2))

objects = $(patsubst %.c,$O/%.o,$(wildcard $(1)/*.c))
MAN := $(wildcard docs/*.[1358])
LIBS := $B/libksmreg.so $B/libksmreg.a $B/libksmreg-preload.so $B/libksmreg-glibc.so

all: $B/ksmctl $B/ksmstat $(LIBS)

$O/%.o: %.c
	@mkdir -p $(@D)
	$(SAY) CC $@
	$Q$(CC) $(ALL_CFLAGS) -fPIE $($(firstword $(subst /, ,$*))_CFLAGS) -c -o $@ $<
$O/%.pic.o: %.c
	@mkdir -p $(@D)
	$(SAY) CC $@
	$Q$(CC) $(ALL_CFLAGS) -fPIC -c -o $@ $<

ksmctl_CFLAGS = $(call pkg,cflags,libcap libmnl smartcols inih libxxhash) -DKSM_LIBDIR='"$(LIBDIR)"' -DKSM_SYSCONFDIR='"$(SYSCONFDIR)"'
ksmstat_CFLAGS = $(call pkg,cflags,libcap smartcols libxxhash ncursesw) -pthread
tests_CFLAGS = $(shell pkg-config --silence-errors --cflags check) # the demonstration builds without it
ksmctl_LIBS = $(call pkg,libs,libcap libmnl smartcols inih libxxhash)
ksmstat_LIBS = $(call pkg,libs,libcap smartcols libxxhash ncursesw) -pthread
tests_LIBS = $(call pkg,libs,check) $(ksmctl_LIBS) $(ksmstat_LIBS)
link = $(SAY) LINK $@; $(CC) $(ALL_LDFLAGS) -pie -o $@ $^

$B/ksmctl: $(call objects,ksmctl) $(call objects,sysfs) $B/libksmreg.a
	$Q$(link) $(ksmctl_LIBS)
$B/ksmstat: $(call objects,ksmstat) $(call objects,sysfs)
	$Q$(link) $(ksmstat_LIBS)
include libksmreg/rules.mk libksmreg/examples/rules.mk

# Tests. Everything but the main() of the programs, so that unit tests reach what they need.
$O/all.a: $(call objects,sysfs) $(filter-out %/main.o,$(call objects,ksmctl) $(call objects,ksmstat)) $O/tests/live/guard.o
	$Qrm -f $@ && $(AR) rcs $@ $^
names = $(patsubst %.c,$B/%,$(wildcard $(1)))
UNIT := $(call names,tests/unit/test_*.c)
LIVE := $(filter-out %/guard,$(call names,tests/live/*.c))
$(UNIT) $(LIVE): $B/%: $O/%.o $O/all.a $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link) $(tests_LIBS) -lpthread
$B/tests/job: $O/tests/demo/job.o $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link)
$B/tests/scene: $O/tests/scene/scene.o $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link)
$B/tests/crowd: $O/tests/scene/crowd.o
	@mkdir -p $(@D)
	$Q$(link)
$B/tests/demo: $O/tests/demo/demo.o $O/tests/demo/service.o $O/all.a
	@mkdir -p $(@D)
	$Q$(link)
-include tests/unit/rules.mk tests/fuzz/rules.mk tests/fault/rules.mk tests/bench/rules.mk
SIM_MODEL := model model_memory model_visit
$B/tests/test_sim: $(patsubst %,$O/tests/sim/%.o,test_sim sim sim_world properties scenarios scenarios_memory \
		scenarios_world $(SIM_MODEL)) $(patsubst %,$O/ksmctl/%.o,policy policy_text rate)
	@mkdir -p $(@D)
	$Q$(link) $(call pkg,libs,check)
$B/tests/calibrate: $(patsubst %,$O/tests/sim/%.o,calibrate real $(SIM_MODEL)) $O/all.a
	@mkdir -p $(@D)
	$Q$(link) $(call pkg,libs,check)
SIM := $B/tests/test_sim $B/tests/calibrate
TESTS := $(UNIT) $(FUZZ) $B/tests/test_sim $(wildcard tests/cli/*.sh tests/live/*.sh) $(LIVE) $(FAULTS) $B/tests/calibrate
# What every day takes of check-kernels: the machines that are ready in seconds, where they are cached already.
VM_QUICK := "tests/vm/daemon.sh 6.1" "tests/vm/opt_in.sh 6.12"

#: all              the programs and the library (the default)
.PHONY: all check check-kernels check-systemd check-long check-monitoring demo deps fixtures help lint asan tsan valgrind bench-stat deb check-deb install uninstall clean tests
tests: all $(UNIT) $(FUZZ) $(LIVE) $(SIM) $(FAULTS) $B/tests/demo $B/tests/job $B/tests/scene $B/tests/crowd examples
#: check            all tests; the live ones need root
check:
	@.ci/deps check
	@$(MAKE) --no-print-directory tests
	@B=$B KSM_VM_CACHED=1 tests/run $(TESTS) $(VM_QUICK)
#: demo             the main job: three processes, merged, with figures (root)
demo:
	@.ci/deps build
	@$(MAKE) --no-print-directory all $B/tests/demo $B/tests/job
	@$B/tests/demo
#: deps             install the Debian packages that build and tests need (root)
deps:
	@.ci/deps build check
# Kernels of Debian under qemu; a kernel that cannot be had is skipped, and says why. What is fetched and made
# for them is cached, see tests/vm/kernel and tests/vm/debian.
KERNELS := 6.1 6.12 7.x
#: check-kernels    tests on other kernels, and with NUMA nodes, under qemu (.ci/deps vm)
check-kernels: tests
	@B=$B TEST_TIMEOUT_S=3600 tests/run -o $B/kernels $(foreach k,$(KERNELS),$(foreach t,features daemon opt_in doctor live,\
		"tests/vm/$t.sh $k")) "tests/vm/numa.sh 6.12"
	@tests/vm/table $B/kernels
#: check-systemd    the service under systemd 252 and 257, under qemu (.ci/deps vm)
check-systemd: tests
	@B=$B TEST_TIMEOUT_S=1800 tests/run -o $B/kernels "tests/vm/systemd.sh bookworm" "tests/vm/systemd.sh trixie"
#: fixtures         captured trees of other kernels, anew
fixtures:
	@for k in 6.1 6.12 7.x; do tests/vm/capture $$k || exit 1; done
# What is too long for every day: races of fork, tools that watch each access.
#: check-long       what is too long for every day
check-long: tests
	@FORKS=10000 KSM_TEST_LONG=1 B=$B tests/run $B/tests/unit/test_reg_forks $B/tests/live/enable_busy tests/live/enable_cli.sh \
		tests/live/completeness.sh
# With a real Prometheus; `make check` does it too where that is installed.
#: check-monitoring the monitoring set, with a real Prometheus
check-monitoring: tests
	@.ci/deps monitor
	@B=$B tests/run tests/cli/ksmstat_prom.sh tests/live/monitoring.sh
#: tsan valgrind    tests of threads; tests that watch each access
tsan valgrind:
	@B=$B tests/sanitize $(patsubst tsan,thread,$@)
#: bench-stat       ksmstat against other reporters [JSON= PROCESSES=]
bench-stat: all $B/tests/bench/stat_areas $B/tests/bench/stall
	@.ci/deps bench
	@B=$B tests/bench/stat $(if $(JSON),--json $(JSON)) $(PROCESSES)
#: deb              Debian packages, into $B/deb
deb:
	@.ci/deps build deb
	@rm -rf $B/deb && .ci/deb $B/deb
	@lintian --allow-root --fail-on error,warning --tag-display-limit 0 $B/deb/*.changes
# Fresh systems of Debian 12 and 13, into which they are installed; what cannot be had is skipped, and says why.
#: check-deb        those in fresh systems of Debian 12 and 13
check-deb:
	@B=$B TEST_TIMEOUT_S=3600 tests/run tests/deb/packages.sh
help:
	@sed -n 's/^#: //p' Makefile tests/*/rules.mk
	@echo "Variables: B PREFIX DESTDIR CFLAGS V=1 WERROR="
C_FILES = $(wildcard sysfs/*.[ch] ksmctl/*.[ch] ksmstat/*.[ch] libksmreg/*.[ch] libksmreg/*/*.[ch] tests/*.h tests/*/*.[ch])
LINT_FLAGS = $(filter-out -DKSM_VERSION=%,$(BASE)) -DKSM_VERSION= -w -I. -Ilibksmreg $(call pkg,cflags,libcap libmnl smartcols inih libxxhash ncursesw check python3)
# gcc's own analyser, for what is shipped. Leaks are left to clang's and to make asan: gcc 12 takes for one whatever
# is kept in an array. Without -O1 it loses sight of what memcpy copies.
ANALYSED = $(wildcard sysfs/*.c ksmctl/*.c ksmstat/*.c libksmreg/*.c libksmreg/adapters/*.c)
#: lint             clang-format, cppcheck, clang-tidy, gcc -fanalyzer, scan-build
lint:
	@.ci/deps lint
	@$(MAKE) --no-print-directory run-lint
run-lint:
	clang-format --dry-run -Werror $(C_FILES)
	cppcheck -q --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--suppressions-list=.ci/cppcheck.txt -D_GNU_SOURCE -D__GLIBC__=2 -DKSM_VERSION='""' -I. $(filter %.c,$(C_FILES))
	printf '%s\n' $(filter %.c,$(C_FILES)) | xargs -P $(shell nproc) -n 6 sh -c 'clang-tidy --quiet "$$@" -- $(LINT_FLAGS)' tidy
	printf '%s\n' $(ANALYSED) | xargs -P $(shell nproc) -n 6 sh -c 'for c; do gcc $(filter-out -w,$(LINT_FLAGS)) -O1 -fanalyzer -Wno-analyzer-malloc-leak -Werror -c -o /dev/null $$c || exit 255; done' gcc
	$(MAKE) --no-print-directory B=$B/scan clean
	scan-build --status-bugs -o $B/scan-report $(MAKE) --no-print-directory B=$B/scan all
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
#: asan             all tests under AddressSanitizer and UBSan
asan:
	@SANITIZE="$(SANITIZE)" $(MAKE) --no-print-directory B=$B/asan check \
		LDFLAGS="$(SANITIZE)" CFLAGS="-O1 -g -fno-omit-frame-pointer $(SANITIZE)"
# Lines that tests reach, without those on the real kernel's knobs. Where errors are handled is what to look at first.
COVERED := sysfs/ libksmreg/[a-z-]*[.]c ksmctl/policy[.]c
COVERAGE_LEAST := 90
.PHONY: coverage run-coverage run-lint
#: coverage         lines of sysfs/, libksmreg/ and the policy that tests reach; each of them at least 90 %
coverage:
	@.ci/deps coverage
	@$(MAKE) --no-print-directory B=$B/coverage WERROR= CFLAGS="-O1 -g -w --coverage -fprofile-update=atomic" LDFLAGS=--coverage run-coverage
	@gcovr -r . --object-directory $B/coverage $(patsubst %,-f '%',$(COVERED)) --json $B/coverage/lines.json $B/coverage
	@less=; for part in $(patsubst %,'%',$(COVERED)); do \
		gcovr -r . -a $B/coverage/lines.json -f "$$part" --fail-under-line $(COVERAGE_LEAST) || less=1; done; [ -z "$$less" ]
run-coverage: tests
	@find $B -name '*.gcda' -delete
	@# Counts only: whoever has no right to write them complains, which some tests take amiss. make check judges.
	@-umask 0; chmod -R a+rwX $B; B=$B tests/run $(UNIT) $B/tests/test_sim $(addprefix tests/cli/,ksmctl.sh ksmstat.sh ksmstat_groups.sh programs.sh)
#: install          into PREFIX; also uninstall, clean
install: all $B/ksmreg.pc
	install -d $(DESTDIR)$(SBINDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(PKGDIR) $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSCONFDIR)
	install -m 755 $B/ksmctl $(DESTDIR)$(SBINDIR)
	install -m 755 $B/ksmstat $(DESTDIR)$(BINDIR)
	install -m 644 $B/libksmreg.so.$(SOVERSION) $(filter-out %/libksmreg.so,$(LIBS)) $(DESTDIR)$(LIBDIR)
	ln -sf libksmreg.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libksmreg.so
	install -m 644 libksmreg/ksmreg.h $(DESTDIR)$(INCLUDEDIR)
	install -m 644 $B/ksmreg.pc $(DESTDIR)$(PKGDIR)
	sed 's|@SBINDIR@|$(SBINDIR)|' docs/ksmctl.service.in >$(DESTDIR)$(UNITDIR)/ksmctl.service
	test -e $(DESTDIR)$(SYSCONFDIR)/ksmctl.conf || install -m 644 docs/ksmctl.conf $(DESTDIR)$(SYSCONFDIR)
	install -D -m 644 docs/completion/ksm.bash $(DESTDIR)$(BASHDIR)/ksmctl
	ln -sf ksmctl $(DESTDIR)$(BASHDIR)/ksmstat
	install -D -m 644 docs/completion/ksm.zsh $(DESTDIR)$(ZSHDIR)/_ksmctl
	for page in $(MAN); do install -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; done
uninstall: # a configuration that was changed stays
	rm -f $(addprefix $(DESTDIR),$(SBINDIR)/ksmctl $(BINDIR)/ksmstat $(INCLUDEDIR)/ksmreg.h $(PKGDIR)/ksmreg.pc \
		$(UNITDIR)/ksmctl.service $(BASHDIR)/ksmctl $(BASHDIR)/ksmstat $(ZSHDIR)/_ksmctl $(foreach l,.so .so.$(SOVERSION) .a -preload.so -glibc.so,$(LIBDIR)/libksmreg$l) \
		$(foreach m,$(MAN),$(MANDIR)/man$(subst .,,$(suffix $m))/$(notdir $m)))
	! cmp -s docs/ksmctl.conf $(DESTDIR)$(SYSCONFDIR)/ksmctl.conf || rm $(DESTDIR)$(SYSCONFDIR)/ksmctl.conf
clean:
	rm -rf $B
-include $(shell find $O -name '*.d' 2>/dev/null)
