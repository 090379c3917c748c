/* Memory whose resident pages obey a byte budget, on a stock Linux kernel.
 *
 * A hit is a plain load or store. A miss waits for its page; one that cannot be had (an I/O error,
 * or no room and nothing to reclaim) is SIGBUS, as with any mapping.
 *
 * Functions return 0 or an errno; mglru_last_error() then has one line that says what was wrong.
 * Where an errno is returned, nothing was written through the last argument. Handles may be used
 * by several threads at a time, and be closed in any order. A child of fork() does not have the
 * mappings. A bug in the library ends the process; it never unwinds into the caller.
 */
#ifndef MGLRU_H
#define MGLRU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mglru_pager mglru_pager;
typedef struct mglru_group mglru_group;
typedef struct mglru_map mglru_map;

/* "max" of cgroup v2. */
#define MGLRU_NO_LIMIT UINT64_MAX

enum { MGLRU_LZ4 = 0, MGLRU_ZSTD = 1 };

typedef struct mglru_options {
    size_t size;              /* of this structure */
    uint64_t memory_max;      /* hard budget, bytes: pages, compressed pages and tables */
    uint64_t memory_high;     /* from here on pages are reclaimed in the background */
    uint64_t swap_pool;       /* bytes of compressed anonymous pages in memory */
    uint64_t swap_file_bytes; /* what finds no room there goes to a file */
    const char *swap_folder;  /* where it is, without a name; NULL: none */
    uint32_t codec;           /* MGLRU_LZ4 or MGLRU_ZSTD */
    uint32_t reserved;        /* 0 */
} mglru_options;

#define MGLRU_OPTIONS_INIT \
    { sizeof(mglru_options), MGLRU_NO_LIMIT, MGLRU_NO_LIMIT, 0, 0, NULL, MGLRU_LZ4, 0 }

/* What went wrong in this thread's last call that failed; never NULL, valid until the next. */
const char *mglru_last_error(void);
const char *mglru_version(void);

int mglru_open(const mglru_options *options, mglru_pager **pager);
/* The pager itself ends when its groups and mappings are closed too. NULL is ignored. */
void mglru_close(mglru_pager *pager);

/* The group above all others; groups below it, by name. */
int mglru_root(mglru_pager *pager, mglru_group **group);
int mglru_group_create(mglru_group *parent, const char *name, mglru_group **group);
/* Gives the handle back; the group stays. NULL is ignored. */
void mglru_group_close(mglru_group *group);

/* A limit (memory.min, .low, .high, .max, memory.swap.max), memory.current, memory.peak,
 * memory.swap.current, a key of memory.stat or memory.events. */
int mglru_group_get(mglru_group *group, const char *key, uint64_t *value);
/* A limit, or memory.swappiness. */
int mglru_group_set(mglru_group *group, const char *key, uint64_t value);
/* memory.reclaim: evicts up to so many bytes, and tells how many it was. */
int mglru_group_reclaim(mglru_group *group, uint64_t bytes, uint64_t *reclaimed);

enum { MGLRU_READ = 1, MGLRU_WRITE = 2 };

/* Zeros at first, then swap. */
int mglru_map_anon(mglru_group *group, size_t len, mglru_map **map);
/* All of a file; with MGLRU_WRITE stores go back to it. While it is mapped nobody else may change
 * or truncate it. The descriptor stays the caller's and may be closed. */
int mglru_map_file(mglru_group *group, int fd, int access, mglru_map **map);

/* Backing of your own. Pages are read and written whole at multiples of 4096. The functions return
 * 0 or an errno, are called from threads of the pager, several at a time, and must not touch
 * memory that it manages. */
typedef struct mglru_store {
    size_t size; /* of this structure */
    void *user;
    int (*read_at)(void *user, uint64_t offset, void *to, size_t len);
    int (*write_at)(void *user, uint64_t offset, const void *from, size_t len);
    int (*sync)(void *user);
    void (*close)(void *user); /* nobody needs it any more, which is at once if it cannot be
                                  mapped; may be NULL */
} mglru_store;

int mglru_map_store(mglru_group *group, const mglru_store *store, size_t len, mglru_map **map);

/* Writes back what is dirty, and unmaps whether that succeeded or not. NULL is ignored. */
int mglru_unmap(mglru_map *map);

void *mglru_map_start(const mglru_map *map);
size_t mglru_map_len(const mglru_map *map);

enum {
    MGLRU_NORMAL = 0,     /* neighbours of a missing page are read with it; the whole mapping */
    MGLRU_RANDOM = 1,     /* they are not; the whole mapping */
    MGLRU_SEQUENTIAL = 2, /* more is read ahead, accesses do not protect; the whole mapping */
    MGLRU_WILLNEED = 3,   /* resident when the call returns, as far as there is room */
    MGLRU_COLD = 4,       /* first in line for eviction */
    MGLRU_PAGEOUT = 5     /* written back and evicted now */
};

int mglru_advise(mglru_map *map, size_t offset, size_t len, int advice);
/* All stores made before are durable. */
int mglru_flush_range(mglru_map *map, size_t offset, size_t len);
/* They are in the file or store: who reads it sees them. */
int mglru_write_back(mglru_map *map, size_t offset, size_t len);
/* Whole pages read as their store has them again, or as zeros. */
int mglru_discard(mglru_map *map, size_t offset, size_t len);
/* Keeps pages resident; pins count. */
int mglru_pin(mglru_map *map, size_t offset, size_t len);
int mglru_unpin(mglru_map *map, size_t offset, size_t len);
/* missing, major, protect, throttled, read_around (faults so far), resident (bytes). */
int mglru_map_get(mglru_map *map, const char *key, uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
