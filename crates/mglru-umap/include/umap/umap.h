/* The C functions of UMap that libumap of this project has. */
#ifndef UMAP_H
#define UMAP_H

#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UMAP_PRIVATE MAP_PRIVATE
#define UMAP_FIXED MAP_FIXED
#define UMAP_FAILED ((void *)-1)

/* Maps a part of a file; stores reach it. flags: UMAP_PRIVATE, UMAP_FIXED (in place of what is at
 * addr). On failure UMAP_FAILED and errno. */
void *umap(void *addr, uint64_t length, int prot, int flags, int fd, off_t offset);
/* Writes back what is dirty and unmaps a whole region. -1 and errno on failure. */
int uunmap(void *addr, uint64_t length);
/* Returns when all stores to all regions are durable. */
int umap_flush(void);

struct umap_prefetch_item {
    void *page_base_addr;
};

void umap_prefetch(int npages, struct umap_prefetch_item *page_array);
void umap_fetch_and_pin(char *paddr, uint64_t size);

long umapcfg_get_system_page_size(void);
uint64_t umapcfg_get_umap_page_size(void);
uint64_t umapcfg_get_max_pages_in_buffer(void);
uint64_t umapcfg_get_read_ahead(void);
uint64_t umapcfg_get_num_fillers(void);
uint64_t umapcfg_get_num_evictors(void);
int umapcfg_get_evict_low_water_threshold(void);
int umapcfg_get_evict_high_water_threshold(void);
uint64_t umapcfg_get_max_fault_events(void);

#ifdef __cplusplus
}
#endif
#endif
