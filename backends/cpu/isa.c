/* See isa.h. */
#include "backends/cpu/isa.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__x86_64__)
#define BIT(word, n) (((word) >> (n)) & 1u)

/* What the operating system saves on a switch between threads; using more corrupts registers. */
static uint64_t enabled_states(void)
{
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

static uint32_t detect_avx512(uint32_t ebx, uint32_t ecx, uint32_t edx, uint32_t eax1)
{
	uint32_t isa = 0;
	if (!BIT(ebx, 16) || !BIT(ebx, 30) || !BIT(ebx, 17) || !BIT(ebx, 31)) /* F BW DQ VL */
		return 0;
	isa |= DG__ISA_AVX512;
	if (BIT(ecx, 11))
		isa |= DG__ISA_AVX512_VNNI;
	if (BIT(edx, 23))
		isa |= DG__ISA_AVX512_FP16;
	if (BIT(eax1, 5))
		isa |= DG__ISA_AVX512_BF16;
	return isa;
}

uint32_t dg__isa_detect(void)
{
	uint32_t eax, ebx, ecx, edx, eax1 = 0, isa = DG__ISA_SSE2;
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !BIT(ecx, 27) || !BIT(ecx, 28))
		return isa;
	bool fma = BIT(ecx, 12);
	uint64_t states = enabled_states();
	if ((states & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
		return isa;
	if (eax >= 1) {
		uint32_t b, c, d;
		__get_cpuid_count(7, 1, &eax1, &b, &c, &d);
	}
	if (!fma || !BIT(ebx, 5))
		return isa;
	isa |= DG__ISA_AVX2;
	if (BIT(eax1, 4))
		isa |= DG__ISA_AVX_VNNI;
	if ((states & 0xe6) == 0xe6)
		isa |= detect_avx512(ebx, ecx, edx, eax1);
	return isa;
}

size_t dg__isa_brand(char *buf, size_t size)
{
	uint32_t words[12] = { 0 };
	char brand[sizeof(words) + 1] = "";
	if ((uint32_t)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u)
		for (uint32_t i = 0; i < 3; i++)
			__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
				&words[4 * i + 2], &words[4 * i + 3]);
	memcpy(brand, words, sizeof(words));
	size_t length = strlen(brand), start = strspn(brand, " ");
	while (length > start && brand[length - 1] == ' ')
		brand[--length] = '\0';
	return (size_t)snprintf(buf, size, "%s", brand + start);
}

size_t dg__isa_vendor(char *buf, size_t size)
{
	uint32_t eax, words[3] = { 0 };
	char id[sizeof(words) + 1] = "";
	__get_cpuid(0, &eax, &words[0], &words[2], &words[1]);
	memcpy(id, words, sizeof(words));
	const char *name = !strcmp(id, "GenuineIntel")   ? "Intel"
			   : !strcmp(id, "AuthenticAMD") ? "AMD"
							 : id;
	return (size_t)snprintf(buf, size, "%s", name);
}

static const char family[] = "x86-64";
#elif defined(__aarch64__)
uint32_t dg__isa_detect(void)
{
	uint32_t isa = DG__ISA_NEON; /* part of the base architecture */
#ifdef __linux__
	unsigned long caps = getauxval(AT_HWCAP);
	if (caps & (1ul << 10)) /* HWCAP_ASIMDHP */
		isa |= DG__ISA_NEON_FP16;
	if (caps & (1ul << 20)) /* HWCAP_ASIMDDP */
		isa |= DG__ISA_NEON_DOT;
#elif defined(__APPLE__)
	isa |= DG__ISA_NEON_FP16 | DG__ISA_NEON_DOT; /* all that run this system have them */
#endif
	return isa;
}

size_t dg__isa_brand(char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "%s", "");
}

size_t dg__isa_vendor(char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "%s", "");
}

static const char family[] = "aarch64";
#else
uint32_t dg__isa_detect(void)
{
	return 0;
}

size_t dg__isa_brand(char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "%s", "");
}

size_t dg__isa_vendor(char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "%s", "");
}

static const char family[] = "generic";
#endif

size_t dg__isa_format(uint32_t isa, char *buf, size_t size)
{
	static const char *const names[] = { "sse2", "avx2", "avx512", "avx512-vnni", "avx512-bf16",
		"avx512-fp16", "avx-vnni", "neon", "neon-fp16", "neon-dot" };
	size_t used = (size_t)snprintf(buf, size, "%s", family);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (isa >> i & 1) {
			size_t room = used < size ? size - used : 0;
			used += (size_t)snprintf(room ? buf + used : NULL, room, " %s", names[i]);
		}
	return used;
}
