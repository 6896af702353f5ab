/*
 * Memory. A run over windows is a number of contiguous spans, made by the host: cold windows that
 * follow one another are one span that goes round the pool. Blocks take tiles of a span in turn, so
 * that the whole device works on one stretch of memory; each thread has VECTORS independent accesses
 * of 16 bytes under way. Compiled after dialect.cuh.
 */
#define THREADS 512
#define NARROW 128
#define VECTOR_BYTES 16

/*
 * Offsets and lengths in units of 256 bytes, so that 32 bits hold a terabyte: divisions of 64 bits
 * would cost more than moving the memory. The host cuts longer runs.
 */
#define UNIT_SHIFT 8

struct move {
	u64 span; /* bytes of each */
	u32 spans;
	u32 pool; /* units after which the offset begins anew */
	u32 first; /* offset of the first span */
	u32 stride; /* from one span to the next */
	u32 tiles; /* of one span */
	u32 window; /* WRITE: units over which the value stays the same; 0: a span */
	u32 inverse; /* WRITE: 2^32 / window in bytes, rounded up, where it is shorter than a tile */
	u32 value; /* WRITE */
	u32 blocks;
};

#if ON_AMD
typedef u32 vec __attribute__((ext_vector_type(4)));
DEVICE vec load(const void *at)
{
	return __builtin_nontemporal_load((const vec *)at);
}
DEVICE vec load_again(const void *at)
{
	vec v = *(const volatile vec *)at;
	return v;
}
DEVICE void store(void *at, vec v)
{
	__builtin_nontemporal_store(v, (vec *)at);
}
DEVICE void store_again(void *at, vec v)
{
	*(volatile vec *)at = v;
}
#define MAKE(x, y, z, w) ((vec){ (x), (y), (z), (w) })
#else
struct vec {
	u32 x, y, z, w;
};
DEVICE vec load(const void *at)
{
	vec v;
#if __CUDA_ARCH__ >= 700
#define PAST_L1 ".L1::no_allocate"
#else
#define PAST_L1 ".cg"
#endif
	asm volatile("ld.global" PAST_L1 ".v4.u32 {%0, %1, %2, %3}, [%4];"
		: "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
	return v;
}
DEVICE vec load_again(const void *at)
{
	vec v;
	asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		: "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
	return v;
}
DEVICE void store(void *at, vec v)
{
	asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
		:: "l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
DEVICE void store_again(void *at, vec v)
{
	asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
		:: "l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
#define MAKE(x, y, z, w) (vec{ (x), (y), (z), (w) })
#endif

/* Where a tile lies: the span it is of, and how far into it. */
struct tile {
	u64 base; /* offset of its first byte in the pool */
	u64 left; /* bytes from there to the end of the span */
	u32 span, at; /* number of the span; units into it */
	bool whole; /* all of it inside the span, on one stretch of the pool */
};

DEVICE tile tile_of(const move &m, u32 number, u32 bytes)
{
	tile t;
	t.span = m.spans == 1 ? 0 : number / m.tiles;
	t.at = (number - t.span * m.tiles) * (bytes >> UNIT_SHIFT);
	t.left = m.span - ((u64)t.at << UNIT_SHIFT);
	const u32 base = (m.first + t.span * m.stride + t.at) % m.pool;
	t.base = (u64)base << UNIT_SHIFT;
	t.whole = t.left >= bytes && base + (bytes >> UNIT_SHIFT) <= m.pool;
	return t;
}

/* Bytes that a thread has to do at its vector: 16, or what is left of the span. */
DEVICE u32 bytes_at(const tile &t, u32 offset)
{
	return t.left <= offset ? 0 : t.left - offset < VECTOR_BYTES ? (u32)(t.left - offset)
								     : VECTOR_BYTES;
}

DEVICE u64 wrapped(const move &m, u64 offset)
{
	const u64 pool = (u64)m.pool << UNIT_SHIFT;
	return offset < pool ? offset : offset % pool;
}

#define WORDS(k, from, to) _Pragma("unroll 1") for (u32 k = (from); k < (to); k += 4)

/* WRITE's value, four bytes of it. */
DEVICE u32 spread(u32 value)
{
	return (value & 0xff) * 0x01010101;
}

/* Every access, whichever load and store are in use, in two forms: whole tiles, and any tile. */

template <int THREAD_COUNT, int VECTORS, bool AGAIN> DEVICE u32 read_tile(const move &m,
	const tile &t, const u8 *src)
{
	const u32 step = THREAD_COUNT * VECTOR_BYTES, mine = THREAD * VECTOR_BYTES;
	u32 sum = 0;
	if (t.whole) {
		const u8 *at = src + t.base + mine;
		vec v[VECTORS];
#pragma unroll
		for (int i = 0; i < VECTORS; i++)
			v[i] = AGAIN ? load_again(at + i * step) : load(at + i * step);
#pragma unroll
		for (int i = 0; i < VECTORS; i++)
			sum += v[i].x + v[i].y + v[i].z + v[i].w;
		return sum;
	}
#pragma unroll 1
	for (int i = 0; i < VECTORS; i++) {
		const u32 todo = bytes_at(t, mine + i * step);
		const u8 *at = src + wrapped(m, t.base + mine + i * step);
		WORDS(k, 0, todo)
			sum += *(const volatile u32 *)(at + k);
	}
	return sum;
}

/* One word of each thread would be many to read back. */
DEVICE void add_up(u32 sum, u32 *sums, u32 count, u32 place)
{
	SHARED u32 total;
	if (THREAD == 0)
		total = 0;
	BARRIER();
	ADD_TO(&total, sum);
	BARRIER();
	if (THREAD == 0)
		ADD_TO(&sums[place % count], total);
}

template <int VECTORS, bool AGAIN> DEVICE void read_tiles(const move &m, const u8 *src, u32 *sums,
	u32 sum_count)
{
	const u32 count = m.tiles * m.spans;
	u32 sum = 0;
	for (u32 n = BLOCK; n < count; n += m.blocks)
		sum += read_tile<THREADS, VECTORS, AGAIN>(m,
			tile_of(m, n, THREADS * VECTORS * VECTOR_BYTES), src);
	add_up(sum, sums, sum_count, BLOCK);
}

template <int THREAD_COUNT, int VECTORS> DEVICE void write_tile(const move &m, const tile &t, u8 *dst)
{
	const u32 step = THREAD_COUNT * VECTOR_BYTES, mine = THREAD * VECTOR_BYTES;
	const u32 bytes = step * VECTORS;
	const u32 pass = m.window ? t.at / m.window : t.span;
	const u32 into = m.window ? t.at - pass * m.window : 0, rest = into << UNIT_SHIFT;
	const u32 first = m.value + pass, value = spread(first);
	const bool near = m.window && (m.inverse || m.window - into < bytes >> UNIT_SHIFT);
	if (t.whole && !near) {
		const vec v = MAKE(value, value, value, value);
#pragma unroll
		for (int i = 0; i < VECTORS; i++)
			store(dst + t.base + mine + i * step, v);
		return;
	}
#pragma unroll 1
	for (int i = 0; i < VECTORS; i++) {
		const u32 offset = mine + i * step;
		const u32 todo = t.whole ? VECTOR_BYTES : bytes_at(t, offset);
		const u32 more = !near ? 0 : m.inverse ? HIGH(rest + offset, m.inverse)
			: into + (offset >> UNIT_SHIFT) >= m.window ? 1 : 0;
		const u32 here = spread(first + more);
		u8 *at = dst + (t.whole ? t.base + offset : wrapped(m, t.base + offset));
		if (todo == VECTOR_BYTES)
			store(at, MAKE(here, here, here, here));
		else
			WORDS(k, 0, todo)
				*(volatile u32 *)(at + k) = here;
	}
}

template <int VECTORS> DEVICE void write_tiles(const move &m, u8 *dst)
{
	const u32 count = m.tiles * m.spans;
	for (u32 n = BLOCK; n < count; n += m.blocks)
		write_tile<THREADS, VECTORS>(m, tile_of(m, n, THREADS * VECTORS * VECTOR_BYTES), dst);
}

/* Passes over one window, in order: each block keeps to its tiles, each thread to its vectors. */
template <int VECTORS> DEVICE void rewrite_tiles(const move &m, u8 *dst)
{
	const u32 bytes = THREADS * VECTORS * VECTOR_BYTES, mine = THREAD * VECTOR_BYTES;
	for (u32 p = 0; p < m.spans; p++) {
		const u32 value = spread(m.value + p);
		const vec v = MAKE(value, value, value, value);
		for (u32 n = BLOCK; n < m.tiles; n += m.blocks) {
			const u64 base = (u64)n * bytes;
			const tile t = { base, m.span - base, p, 0, m.span - base >= bytes };
#pragma unroll
			for (int i = 0; i < VECTORS; i++) {
				const u32 offset = mine + i * THREADS * VECTOR_BYTES;
				const u32 todo = t.whole ? VECTOR_BYTES : bytes_at(t, offset);
				u8 *at = dst + t.base + offset;
				if (todo == VECTOR_BYTES)
					store_again(at, v);
				else
					WORDS(k, 0, todo)
						*(volatile u32 *)(at + k) = value;
			}
		}
	}
}

template <int THREAD_COUNT, int VECTORS, bool AGAIN> DEVICE void copy_tile(const move &m,
	const tile &t, u8 *dst, const u8 *src)
{
	const u32 step = THREAD_COUNT * VECTOR_BYTES, mine = THREAD * VECTOR_BYTES;
	if (t.whole) {
		const u64 at = t.base + mine;
		vec v[VECTORS];
#pragma unroll
		for (int i = 0; i < VECTORS; i++)
			v[i] = AGAIN ? load_again(src + at + i * step) : load(src + at + i * step);
#pragma unroll
		for (int i = 0; i < VECTORS; i++)
			if (AGAIN)
				store_again(dst + at + i * step, v[i]);
			else
				store(dst + at + i * step, v[i]);
		return;
	}
#pragma unroll 1
	for (int i = 0; i < VECTORS; i++) {
		const u32 todo = bytes_at(t, mine + i * step);
		const u64 at = wrapped(m, t.base + mine + i * step);
		WORDS(k, 0, todo)
			*(volatile u32 *)(dst + at + k) = *(const volatile u32 *)(src + at + k);
	}
}

template <int VECTORS, bool AGAIN> DEVICE void copy_tiles(const move &m, u8 *dst, const u8 *src)
{
	const u32 count = m.tiles * m.spans;
	for (u32 n = BLOCK; n < count; n += m.blocks)
		copy_tile<THREADS, VECTORS, AGAIN>(m, tile_of(m, n, THREADS * VECTORS * VECTOR_BYTES), dst,
			src);
}

/*
 * One tile for each block, one span for each row of the grid: blocks begin in that order, so that
 * what is read and what is written stay two narrow fronts, which memory likes best; and where a
 * tile lies takes no division.
 */
DEVICE tile tile_here(const move &m, u32 bytes)
{
	tile t;
	t.span = BLOCK_Y;
	t.at = BLOCK * (bytes >> UNIT_SHIFT);
	t.left = m.span - ((u64)t.at << UNIT_SHIFT);
	u32 base = m.first + t.span * m.stride + t.at;
	base = base >= m.pool ? base - m.pool : base;
	t.base = (u64)base << UNIT_SHIFT;
	t.whole = t.left >= bytes && base + (bytes >> UNIT_SHIFT) <= m.pool;
	return t;
}

#define TILE(vectors) \
	KERNEL(THREADS) tileread_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		const u32 sum = read_tile<THREADS, vectors, false>(m, \
			tile_here(m, THREADS * vectors * VECTOR_BYTES), src); \
		add_up(sum, sums, count, BLOCK + BLOCK_Y); \
	} \
	KERNEL(THREADS) tilewrite_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		write_tile<THREADS, vectors>(m, tile_here(m, THREADS * vectors * VECTOR_BYTES), dst); \
	} \
	KERNEL(NARROW) tilecopy_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		copy_tile<NARROW, vectors, false>(m, tile_here(m, NARROW * vectors * VECTOR_BYTES), dst, \
			src); \
	}
TILE(1)
TILE(2)
TILE(4)
TILE(8)

#define MEMORY(vectors) \
	KERNEL(THREADS) read_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		read_tiles<vectors, false>(m, src, sums, count); \
	} \
	KERNEL(THREADS) reread_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		read_tiles<vectors, true>(m, src, sums, count); \
	} \
	KERNEL(THREADS) copy_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		copy_tiles<vectors, false>(m, dst, src); \
	} \
	KERNEL(THREADS) recopy_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		copy_tiles<vectors, true>(m, dst, src); \
	} \
	KERNEL(THREADS) write_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		write_tiles<vectors>(m, dst); \
	} \
	KERNEL(THREADS) rewrite_##vectors(u8 *dst, const u8 *src, u32 *sums, u32 count, move m) \
	{ \
		rewrite_tiles<vectors>(m, dst); \
	}
MEMORY(1)
MEMORY(2)
MEMORY(4)
MEMORY(8)
KERNEL(1) empty_1(u32 *counter)
{
	++*counter;
}
