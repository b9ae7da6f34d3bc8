/**
 * Largest JavaScript heap of an engine process, in MiB. The heap holds mostly the tokenizer, and the largest published
 * vocabulary needs half of this. Weights and KV are outside the heap.
 */
const HEAP_MIB = 1024;

/**
 * Largest semi-space (half of V8's young generation), in MiB. 16 was Node's default for years. With 32, V8's default
 * for this heap, the process held 130 MB more after a quarter of an hour of load.
 */
const SEMI_SPACE_MIB = 16;

/** Node flags that bound the JavaScript heap of an engine process. */
export const HEAP_FLAGS = [`--max-old-space-size=${HEAP_MIB}`, `--max-semi-space-size=${SEMI_SPACE_MIB}`];

/**
 * Environment variable that configures glibc's allocator; other systems ignore it. Source: glibc manual, "Memory
 * Allocation Tunables".
 * - `hugetlb`: asks for huge pages for weights and KV, which every step reads as a whole; measured, a token takes a
 *   tenth less time.
 * - `mmap_threshold`: a block of 2 MiB or more, such as the KV of a sequence, is mapped separately and returned to the
 *   system when it is freed. Without it glibc raises the threshold to the largest block freed, and blocks of many sizes
 *   fragment its heap.
 */
export const ENGINE_MEMORY = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=2097152' };
