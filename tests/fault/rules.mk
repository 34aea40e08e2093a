# Faults of the kernel and of memory, injected into the programs as they are.
# SPDX-License-Identifier: GPL-2.0-or-later
# make check has the quick form of these, make check-faults all of it.
FAULTS := $(addprefix $B/tests/fault/,verbs service exhaustion connector clock signals moments)
FAULT_SHARED := $(patsubst %,$O/tests/fault/%.o,run tree serve tell memory)
FAULT_PLAYERS := $B/tests/fault/fault.so $B/tests/fault/kernel.so
$B/tests/fault/fault.so: tests/fault/fault.c
	@mkdir -p $(@D)
	$(SAY) LINK $@
	$Q$(CC) $(BASE) $(WARN) -O1 -g -fPIC -fno-builtin -shared -o $@ $< -ldl
$B/tests/fault/kernel.so: tests/cli/kernel.c
	@mkdir -p $(@D)
	$(SAY) LINK $@
	$Q$(CC) $(BASE) $(WARN) -O1 -g -fPIC -shared -o $@ $<
$(FAULTS): $B/%: $O/%.o $(FAULT_SHARED) $O/all.a
	@mkdir -p $(@D)
	$Q$(link) $(tests_LIBS)
$(FAULTS): | $(FAULT_PLAYERS)

.PHONY: check-faults
#: check-faults     all calls that can fail, each in turn
check-faults: all $(FAULTS) $(FAULT_PLAYERS)
	@FAULTS=all TEST_TIMEOUT_S=3600 B=$B tests/run $(FAULTS)
