# Rules for the examples of libksmreg, included by the top Makefile: `make examples`.
# SPDX-License-Identifier: MIT
E := $B/examples
EXAMPLE_FLAGS = -I. -Ilibksmreg $(WARN_BOTH) $(WERROR) -O2 -g $(CPPFLAGS) -pthread
example = @mkdir -p $(@D); $(if $V,,echo "   EXAMPLE $@";) $(CC) -std=gnu11 $(EXAMPLE_FLAGS) -o $@ $(filter %.c %.o,$^)
examplexx = @mkdir -p $(@D); $(if $V,,echo "   EXAMPLE $@";) $(CXX) -std=c++17 $(EXAMPLE_FLAGS) -o $@ $(filter %.cc %.o,$^)
has_header = $(shell echo '\#include <$(1)>' | $(2) -E - >/dev/null 2>&1 && echo yes)
WARN_BOTH := -Wall -Wextra

# Allocators that are not installed are left out, and said.
EXAMPLES := fill fill-arena fill-glibc vectors objects
ifeq ($(call has_header,gperftools/malloc_extension.h,$(CXX) -x c++),yes)
EXAMPLES += fill-tcmalloc fill-plain-tcmalloc
else
LEFT_OUT += tcmalloc:libgoogle-perftools-dev
endif
ifeq ($(call has_header,jemalloc/jemalloc.h,$(CC) -x c),yes)
EXAMPLES += fill-jemalloc fill-plain-jemalloc
else
LEFT_OUT += jemalloc:libjemalloc-dev
endif
ifeq ($(call has_header,mimalloc.h,$(CC) -x c),yes)
EXAMPLES += fill-mimalloc fill-plain-mimalloc
else
LEFT_OUT += mimalloc:libmimalloc-dev
endif
PYTHON := $(wildcard $(shell pkg-config --silence-errors --variable=exec_prefix python3)/bin/python$(shell \
	pkg-config --silence-errors --modversion python3))
ifneq ($(PYTHON),)
EXAMPLES += fill-python
else
LEFT_OUT += python:libpython3-dev
endif

.PHONY: examples
examples: $(addprefix $E/,$(EXAMPLES))
	@$(if $(LEFT_OUT),echo "examples left out for want of a package: $(LEFT_OUT)",:)

# The library once more, without the sanitizers of `make asan`: those have an allocator of their own.
EXAMPLE_REG := $(patsubst $O/libksmreg/%.pic.o,$E/obj/%.o,$(REG_OBJ))
$(EXAMPLE_REG): $E/obj/%.o: libksmreg/%.c libksmreg/ksmreg.h libksmreg/kernel.h
	@mkdir -p $(@D)
	$Q$(CC) -std=gnu11 $(EXAMPLE_FLAGS) -c -o $@ $<
FILL := libksmreg/examples/fill.c
ADAPTERS_H := libksmreg/adapters/adapters.h
$E/fill: $(FILL)
	$(example)
$E/fill-arena: $(FILL) libksmreg/examples/arena.c libksmreg/examples/arena.h $(EXAMPLE_REG)
	$(example) -DWITH_ARENA
$E/fill-jemalloc: $(FILL) libksmreg/adapters/jemalloc.c $(ADAPTERS_H) $(EXAMPLE_REG)
	$(example) -DWITH_JEMALLOC -ljemalloc
$E/fill-mimalloc: $(FILL) libksmreg/adapters/mimalloc.c $(ADAPTERS_H) $(EXAMPLE_REG)
	$(example) -DWITH_MIMALLOC -lmimalloc
$E/fill-tcmalloc.o: $(FILL) $(ADAPTERS_H)
	@mkdir -p $(@D)
	$Q$(CC) -std=gnu11 $(EXAMPLE_FLAGS) -DWITH_TCMALLOC -c -o $@ $<
$E/fill-tcmalloc: $E/fill-tcmalloc.o libksmreg/adapters/tcmalloc.cc $(ADAPTERS_H) $(EXAMPLE_REG)
	$(examplexx) -ltcmalloc_minimal
$E/fill-plain-%: $(FILL)
	$(example) -Wl,--no-as-needed $(if $(filter tcmalloc,$*),-ltcmalloc_minimal,-l$*)
# Not for a static program: there it would be a second malloc.
$E/fill-glibc: $(FILL) libksmreg/adapters/glibc.c $(EXAMPLE_REG)
	$(example)
# A module lies beside the program that imports it.
$E/ksmreg.so: libksmreg/adapters/python.c $(patsubst $O/%.pic.o,%.c,$(REG_OBJ)) libksmreg/ksmreg.h libksmreg/kernel.h
	$(example) -shared -fPIC -fvisibility=hidden $(call pkg,cflags,python3)
$E/fill-python: libksmreg/examples/fill.py $E/ksmreg.so
	@mkdir -p $(@D)
	$Q{ echo '#!$(PYTHON)'; cat $<; } >$@ && chmod +x $@
$E/vectors $E/objects: $E/%: libksmreg/examples/%.cc libksmreg/ksmreg.h $(EXAMPLE_REG)
	$(examplexx)
