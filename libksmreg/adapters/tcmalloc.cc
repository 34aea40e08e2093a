/* libksmreg in gperftools tcmalloc: registers what tcmalloc gets from the system, before it is used. */
/* SPDX-License-Identifier: MIT */
#include "adapters.h"

#include <errno.h>
#include <gperftools/malloc_extension.h>
#include <mutex>
#include <new>

namespace
{

/* tcmalloc calls Alloc under its own spinlock, so nothing here may allocate: libksmreg does not. */
class Registering : public SysAllocator
{
      public:
	explicit Registering(SysAllocator *source) : source_(source)
	{
	}

	/* `actual` tells how much was really got, which may be more than was asked for; or is null. */
	void *Alloc(size_t size, size_t *actual, size_t alignment) override
	{
		size_t got = size;
		void *p = source_->Alloc(size, &got, alignment);

		if (p)
			ksmreg_register(p, got);
		if (actual)
			*actual = got;
		return p;
	}

      private:
	SysAllocator *source_;
};

/* Raw storage: in use before constructors run, and after main. */
alignas(Registering) unsigned char place[sizeof(Registering)];
SysAllocator *ours;

SysAllocator *in_front_of(SysAllocator *source)
{
	ours = new (place) Registering(source);
	return ours;
}

} // namespace

/*
 * tcmalloc asks for this when it takes its first memory, which is before main. Weak, as tcmalloc's own
 * is, so that a program may have another.
 */
__attribute__((weak, visibility("default"))) SysAllocator *tc_get_sysalloc_override(
	SysAllocator *source);

SysAllocator *tc_get_sysalloc_override(SysAllocator *source)
{
	return in_front_of(source);
}

int ksmreg_tcmalloc_install(void)
{
	static std::mutex lock;
	std::lock_guard<std::mutex> guard(lock);
	MallocExtension *extension = MallocExtension::instance();
	size_t value;

	/* without tcmalloc there is an extension too, which knows nothing */
	if (!extension->GetNumericProperty("tcmalloc.pageheap_free_bytes", &value))
		return -ENOTSUP;
	if (ours || ksmreg_off_for_good())
		return 0;
	SysAllocator *source = extension->GetSystemAllocator();
	if (!source)
		return -ENOTSUP;
	extension->SetSystemAllocator(in_front_of(source));
	return ksmreg_register_existing(KSMREG_HEAP | KSMREG_ANON);
}
