# Benchmarks of the controllers on the real kernel, included by the top Makefile.
# SPDX-License-Identifier: GPL-2.0-or-later
# make bench-control                     short form, 80 s for each controller
# make bench-control SECONDS=240         the long one
# make bench-control BENCH_OPTIONS='--workload main,busy --repeat 3'    see $B/tests/bench/control --help
BENCH_OBJECTS := $(patsubst %,$O/tests/bench/%.o,controller machine place report run series short workload)
SECONDS ?= 80
IDLE_SECONDS ?= 300
MINUTES ?= 20

$B/tests/bench/load: $O/tests/bench/load.o $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link)
$B/tests/bench/control $B/tests/bench/idle $B/tests/bench/soak: $B/%: $O/%.o $(BENCH_OBJECTS) $O/all.a $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link) -lm

.PHONY: bench-programs bench-control bench-idle soak
bench-programs: $B/ksmctl $B/tests/bench/load $B/tests/bench/control $B/tests/bench/idle $B/tests/bench/soak
#: bench-control    the service against other controllers [SECONDS= BENCH_OPTIONS=]
bench-control:
	@.ci/deps build bench
	@$(MAKE) --no-print-directory bench-programs
	@tests/bench/fetch-ksmtuned $B/bench/ksmtuned
	$B/tests/bench/control --seconds $(SECONDS) --json $B/bench/control.json --csv $B/bench/control.csv $(BENCH_OPTIONS)
	@tests/bench/plot $B/bench/control.csv $B/bench
#: bench-idle       what the service itself costs
bench-idle:
	@.ci/deps build
	@$(MAKE) --no-print-directory bench-programs
	$B/tests/bench/idle --seconds $(IDLE_SECONDS) $(BENCH_OPTIONS)
#: soak             a long run of jobs that come and go [MINUTES=20]
soak:
	@.ci/deps build
	@$(MAKE) --no-print-directory bench-programs
	$B/tests/bench/soak --minutes $(MINUTES) $(BENCH_OPTIONS)

# make bench-reg [QUICK=1] [JSON=FILE]
$B/tests/bench/reg_micro: $(patsubst %,$O/tests/bench/%.o,reg_micro reg_growth reg_stat) $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link) -lm -lpthread -ldl
$B/tests/bench/reg_pairs: $(patsubst %,$O/tests/bench/%.o,reg_pairs reg_stat machine) $(call objects,sysfs)
	@mkdir -p $(@D)
	$Q$(link) -lm
.PHONY: bench-reg
#: bench-reg        what the library costs [QUICK=1 JSON=]
bench-reg:
	@.ci/deps build
	@$(MAKE) -s $(LIBS) $B/tests/bench/reg_micro $B/tests/bench/reg_pairs
	@B=$B QUICK=$(QUICK) tests/bench/reg $(if $(JSON),--json $(JSON))

# make bench-farm [QUICK=1] [JSON=FILE] [PARTS='jobs programs huge']
$B/tests/bench/farm_run: $(patsubst %,$O/tests/bench/%.o,farm_run farm_jobs reg_stat) $(BENCH_OBJECTS) $O/all.a $B/libksmreg.a
	@mkdir -p $(@D)
	$Q$(link) -lm
.PHONY: bench-farm
#: bench-farm       the experiment of the farm [QUICK=1 JSON=]
bench-farm:
	@.ci/deps build bench
	@$(MAKE) -s $B/ksmctl $B/ksmstat $(LIBS) $B/tests/job $B/tests/bench/farm_run
	@B=$B QUICK=$(QUICK) tests/bench/farm $(if $(JSON),--json $(JSON)) $(PARTS)

# make bench-estimate [JSON=FILE] [WORKLOADS='jobs python']
$B/tests/bench/estimate_copy: $O/tests/bench/estimate_copy.o
	@mkdir -p $(@D)
	$Q$(link)
.PHONY: bench-estimate
#: bench-estimate   estimates against what is then merged [WORKLOADS=]
bench-estimate:
	@.ci/deps build
	@$(MAKE) -s $B/ksmctl $B/ksmstat $(LIBS) $B/tests/job $B/tests/bench/estimate_copy
	@$B/tests/bench/estimate_copy $B/ksmstat
	@B=$B tests/bench/estimate $(if $(JSON),--json $(JSON)) $(WORKLOADS)

# make bench-stat [JSON=FILE] [PROCESSES=375]
$B/tests/bench/stat_areas $B/tests/bench/stall: $B/%: $O/%.o
	@mkdir -p $(@D)
	$Q$(link)
