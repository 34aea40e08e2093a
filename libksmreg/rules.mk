# Rules for libksmreg, included by the top Makefile: shared and static library, preload, pkg-config file.
REG_OBJ := $(patsubst %,$O/libksmreg/%.pic.o,ksmreg probe environment areas)
reg_link = $(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,-z,defs,-Bsymbolic-functions \
	-Wl,--version-script=$(filter %.map,$^) \
	-o $@ $(filter %.o,$^)

$B/libksmreg.so.$(SOVERSION): $(REG_OBJ) libksmreg/ksmreg.map
	$(SAY) LINK $@
	$Q$(reg_link)
$B/libksmreg.so: $B/libksmreg.so.$(SOVERSION)
	$Qln -sf $(<F) $@
$B/libksmreg.a: $(REG_OBJ)
	$(SAY) AR $@
	$Qrm -f $@ && $(AR) rcs $@ $^
$B/libksmreg-preload.so: $O/libksmreg/ksmreg-preload.pic.o $(REG_OBJ) libksmreg/preload.map
	$(SAY) LINK $@
	$Q$(reg_link)
$O/libksmreg/adapters/%.pic.o: override CFLAGS += -Ilibksmreg
$B/libksmreg-glibc.so: $O/libksmreg/adapters/glibc.pic.o $(REG_OBJ) libksmreg/adapters/glibc.map
	$(SAY) LINK $@
	$Q$(reg_link)
$B/ksmreg.pc: libksmreg/ksmreg.pc.in
	@mkdir -p $(@D)
	$Qsed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@
