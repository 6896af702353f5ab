/*
 * Reading, writing and copying with vectors of any x86-64 width. Defined before inclusion: TARGET,
 * VEC, and the operations LOAD, STORE, STREAM, ADD32, SET32 and ZERO on it.
 */
#ifndef DEVGATE_BACKENDS_CPU_KERNELS_MEMORY_X86_H
#define DEVGATE_BACKENDS_CPU_KERNELS_MEMORY_X86_H

#define BLOCK (8 * sizeof(VEC))

/* No pass over the same memory may be left out. */
#define KEEP_PASS() __asm__ volatile("" : : : "memory")

TARGET static uint32_t read_tail(const unsigned char *p, size_t bytes)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < bytes / 4; i++) {
		uint32_t word;
		memcpy(&word, p + 4 * i, sizeof(word));
		sum += word;
	}
	return sum;
}

TARGET static uint32_t read_vectors(const void *src, size_t bytes, uint64_t times)
{
	const unsigned char *end = (const unsigned char *)src + bytes / BLOCK * BLOCK;
	VEC s0 = ZERO(), s1 = ZERO(), s2 = ZERO(), s3 = ZERO();
	uint32_t words[sizeof(VEC) / 4], sum = 0;
	for (; times; times--) {
		KEEP_PASS();
		const unsigned char *p = src;
		for (; p < end; p += BLOCK) {
			const VEC *v = (const void *)p;
			s0 = ADD32(s0, LOAD(v));
			s1 = ADD32(s1, LOAD(v + 1));
			s2 = ADD32(s2, LOAD(v + 2));
			s3 = ADD32(s3, LOAD(v + 3));
			s0 = ADD32(s0, LOAD(v + 4));
			s1 = ADD32(s1, LOAD(v + 5));
			s2 = ADD32(s2, LOAD(v + 6));
			s3 = ADD32(s3, LOAD(v + 7));
		}
		if (bytes % BLOCK)
			sum += read_tail(p, bytes % BLOCK);
	}
	STORE((void *)words, ADD32(ADD32(s0, s1), ADD32(s2, s3)));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sum += words[i];
	return sum;
}

TARGET static void write_vectors(void *dst, size_t bytes, uint64_t times, uint8_t value)
{
	unsigned char *end = (unsigned char *)dst + bytes / BLOCK * BLOCK;
	for (; times; times--, value++) {
		KEEP_PASS();
		unsigned char *p = dst;
		VEC v = SET32((int)(value * 0x01010101u));
		for (; p < end; p += BLOCK) {
			VEC *to = (void *)p;
			STORE(to, v);
			STORE(to + 1, v);
			STORE(to + 2, v);
			STORE(to + 3, v);
			STORE(to + 4, v);
			STORE(to + 5, v);
			STORE(to + 6, v);
			STORE(to + 7, v);
		}
		memset(p, value, bytes % BLOCK);
	}
}

TARGET static void write_streaming(void *dst, size_t bytes, uint64_t times, uint8_t value)
{
	unsigned char *end = (unsigned char *)dst + bytes / BLOCK * BLOCK;
	for (; times; times--, value++) {
		KEEP_PASS();
		unsigned char *p = dst;
		VEC v = SET32((int)(value * 0x01010101u));
		for (; p < end; p += BLOCK) {
			VEC *to = (void *)p;
			STREAM(to, v);
			STREAM(to + 1, v);
			STREAM(to + 2, v);
			STREAM(to + 3, v);
			STREAM(to + 4, v);
			STREAM(to + 5, v);
			STREAM(to + 6, v);
			STREAM(to + 7, v);
		}
		memset(p, value, bytes % BLOCK);
	}
	_mm_sfence();
}

TARGET static void copy_vectors(void *dst, const void *src, size_t bytes, uint64_t times)
{
	unsigned char *end = (unsigned char *)dst + bytes / BLOCK * BLOCK;
	for (; times; times--) {
		KEEP_PASS();
		unsigned char *p = dst;
		const unsigned char *q = src;
		for (; p < end; p += BLOCK, q += BLOCK) {
			VEC *to = (void *)p;
			const VEC *from = (const void *)q;
			VEC v0 = LOAD(from), v1 = LOAD(from + 1), v2 = LOAD(from + 2),
			    v3 = LOAD(from + 3);
			STORE(to, v0);
			STORE(to + 1, v1);
			STORE(to + 2, v2);
			STORE(to + 3, v3);
			v0 = LOAD(from + 4), v1 = LOAD(from + 5), v2 = LOAD(from + 6),
			v3 = LOAD(from + 7);
			STORE(to + 4, v0);
			STORE(to + 5, v1);
			STORE(to + 6, v2);
			STORE(to + 7, v3);
		}
		memcpy(p, q, bytes % BLOCK);
	}
}

TARGET static void copy_streaming(void *dst, const void *src, size_t bytes, uint64_t times)
{
	unsigned char *end = (unsigned char *)dst + bytes / BLOCK * BLOCK;
	for (; times; times--) {
		KEEP_PASS();
		unsigned char *p = dst;
		const unsigned char *q = src;
		for (; p < end; p += BLOCK, q += BLOCK) {
			VEC *to = (void *)p;
			const VEC *from = (const void *)q;
			VEC v0 = LOAD(from), v1 = LOAD(from + 1), v2 = LOAD(from + 2),
			    v3 = LOAD(from + 3);
			STREAM(to, v0);
			STREAM(to + 1, v1);
			STREAM(to + 2, v2);
			STREAM(to + 3, v3);
			v0 = LOAD(from + 4), v1 = LOAD(from + 5), v2 = LOAD(from + 6),
			v3 = LOAD(from + 7);
			STREAM(to + 4, v0);
			STREAM(to + 5, v1);
			STREAM(to + 6, v2);
			STREAM(to + 7, v3);
		}
		memcpy(p, q, bytes % BLOCK);
	}
	_mm_sfence();
}

static const dg__memory_kernel memory[] = {
	{ DG__KERNEL_READ, NEEDS, ISA, false, read_vectors, NULL, NULL },
	{ DG__KERNEL_WRITE, NEEDS, ISA, false, NULL, write_vectors, NULL },
	{ DG__KERNEL_COPY, NEEDS, ISA, false, NULL, NULL, copy_vectors },
	{ DG__KERNEL_WRITE, NEEDS, ISA " streaming", true, NULL, write_streaming, NULL },
	{ DG__KERNEL_COPY, NEEDS, ISA " streaming", true, NULL, NULL, copy_streaming },
};

#endif
