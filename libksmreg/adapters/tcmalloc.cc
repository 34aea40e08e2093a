/* libksmreg in gperftools tcmalloc: registers what tcmalloc gets from the system, before it is used. */
/* SPDX-License-Identifier: MIT */
#include "adapters.h"
#include "ksmreg.h"

#include <errno.h>
#include <gperftools/malloc_extension.h>
#include <new>

namespace
{

/*
 * tcmalloc calls Alloc under its own spinlock, so nothing here may allocate: libksmreg does not.
 * `actual` is NULL or tells how much was really got, which may be more than was asked for.
 */
class Registering : public SysAllocator
{
      public:
	explicit Registering(SysAllocator *source) : source_(source)
	{
	}

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

/* Static, and never destroyed: tcmalloc goes on after main. */
alignas(Registering) unsigned char place[sizeof(Registering)];
bool installed;

} // namespace

int ksmreg_tcmalloc_install(void)
{
	MallocExtension *extension = MallocExtension::instance();
	size_t value;

	if (installed)
		return 0;
	/* without tcmalloc there is an extension too, which knows nothing */
	if (!extension->GetNumericProperty("tcmalloc.pageheap_free_bytes", &value))
		return -ENOTSUP;
	SysAllocator *source = extension->GetSystemAllocator();
	if (!source)
		return -ENOTSUP;
	extension->SetSystemAllocator(new (place) Registering(source));
	installed = true;
	/* what it took before */
	ksmreg_register_existing(KSMREG_HEAP | KSMREG_ANON);
	return 0;
}
