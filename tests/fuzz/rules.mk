# The fuzz targets: as tests that replay their corpus, and with libFuzzer.
# SPDX-License-Identifier: GPL-2.0-or-later
FUZZ := $(filter-out %/replay,$(call names,tests/fuzz/*.c))
FUZZERS := $(addsuffix .fuzzer,$(FUZZ))
$(FUZZ): $B/%: $O/%.o $O/tests/fuzz/replay.o $O/all.a $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link) $(tests_LIBS)
$(FUZZERS): $B/%.fuzzer: $O/%.o $O/all.a $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link) -fsanitize=fuzzer $(tests_LIBS)

# These play the files and the socket that they try.
fuzz_wrap = $(foreach t,$(1),$B/tests/fuzz/$t $B/tests/fuzz/$t.fuzzer)
$(call fuzz_wrap,smaps maps): override LDFLAGS += $(call wrap,read pread64)
$(call fuzz_wrap,maps): override LDFLAGS += $(call wrap,ioctl)
$(call fuzz_wrap,config): override LDFLAGS += $(call wrap,fopen64)
$(call fuzz_wrap,journal): override LDFLAGS += $(call wrap,state_read state_open state_close state_holder ctl_read_config)
$(call fuzz_wrap,connector): override LDFLAGS += $(call wrap,mnl_socket_recvfrom)
# This one must not reach a kernel, whatever it is told.
$(call fuzz_wrap,ksmctl_args): override LDFLAGS += $(call wrap,ctl_open root_open)

# In a tree of their own, by clang. SECONDS is for each target; TARGETS are some of them.
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_BUILD = $(MAKE) --no-print-directory B=$B/fuzz CC=clang WERROR= LDFLAGS="$(FUZZ_FLAGS)" \
	CFLAGS="-O1 -g -fno-omit-frame-pointer $(FUZZ_FLAGS)" fuzzers
TARGETS ?= $(notdir $(FUZZ))
.PHONY: fuzz fuzz-corpus fuzzers
fuzzers: $(FUZZERS)
#: fuzz             libFuzzer on every parser [SECONDS=60 TARGETS=]
fuzz:
	@.ci/deps fuzz
	@$(FUZZ_BUILD)
	@B=$B/fuzz tests/fuzz/run $(or $(SECONDS),60) $(TARGETS)
#: fuzz-corpus      the corpus, anew
fuzz-corpus: all
	@.ci/deps fuzz
	@$(FUZZ_BUILD)
	@B=$B/fuzz tests/fuzz/minimise $(TARGETS)
