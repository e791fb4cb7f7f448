/* What elfutils' configure would find, as far as libelf needs it; right for musl and for glibc. */
#define HAVE_DECL_MEMRCHR 1
#define HAVE_DECL_POWEROF2 1
#define HAVE_ERR_H 1
#define HAVE_FALLTHROUGH 1
#define HAVE_STDATOMIC_H 1
#define HAVE_VISIBILITY 1
/* Older glibc lacks it, and libelf's own may not have the name where it is declared. */
#include <stdlib.h>
#define reallocarray elf_reallocarray
#include <eu-config.h>
