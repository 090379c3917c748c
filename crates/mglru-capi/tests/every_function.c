/* Calls every function of mglru.h: rightly, and wrongly where that can be told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mglru.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

#define IS(expected, call) is(expected, call, #call, __LINE__)
#define TRUE(fact) is(1, !!(fact), #fact, __LINE__)

static void is(long expected, long got, const char *what, int line)
{
    if (expected != got) {
        fprintf(stderr, "line %d: %s is %ld, not %ld (%s)\n", line, what, got, expected,
                mglru_last_error());
        exit(1);
    }
}

static int says(const char *text)
{
    return strcmp(mglru_last_error(), text) == 0;
}

static mglru_pager *open_pager(void)
{
    mglru_options options = MGLRU_OPTIONS_INIT;
    mglru_pager *pager = NULL;

    IS(EINVAL, mglru_open(NULL, &pager));
    TRUE(says("options is NULL"));
    options.memory_max = 1 << 20;
    IS(EINVAL, mglru_open(&options, &pager));
    TRUE(says("memory.max: 1048576 is not within 4194304 bytes and more"));
    options.memory_max = 8 * MIB;
    IS(EINVAL, mglru_open(&options, NULL));
    options.codec = 7;
    IS(EINVAL, mglru_open(&options, &pager));
    options.codec = MGLRU_ZSTD;
    options.size = 3;
    IS(EINVAL, mglru_open(&options, &pager));
    options.size = sizeof options;
    options.swap_pool = 4 * MIB;
    options.swap_folder = ".";
    options.swap_file_bytes = 64 * MIB;
    TRUE(pager == NULL);
    IS(0, mglru_open(&options, &pager));
    return pager;
}

static mglru_group *groups(mglru_pager *pager)
{
    mglru_group *root, *group, *twin = NULL;
    uint64_t value = 0;

    IS(EINVAL, mglru_root(NULL, &root));
    IS(0, mglru_root(pager, &root));
    IS(0, mglru_group_create(root, "table", &group));
    IS(EEXIST, mglru_group_create(root, "table", &twin));
    TRUE(twin == NULL && says("`/table` is not a new group's name"));
    IS(EINVAL, mglru_group_create(root, "\xff", &twin));
    IS(0, mglru_group_get(group, "memory.max", &value));
    TRUE(value == MGLRU_NO_LIMIT);
    IS(0, mglru_group_set(group, "memory.max", 6 * MIB));
    IS(0, mglru_group_get(group, "memory.max", &value));
    TRUE(value == 6 * MIB);
    IS(0, mglru_group_set(group, "memory.swappiness", 100));
    IS(EINVAL, mglru_group_set(group, "memory.swappiness", 1000));
    IS(EINVAL, mglru_group_set(group, "memory.most", 1));
    TRUE(says("`memory.most` of a group cannot be set"));
    IS(EINVAL, mglru_group_get(group, "memory.most", &value));
    mglru_group_close(root);
    return group;
}

/* While the group has room: nothing else takes pages. */
static void reclaim(mglru_group *group)
{
    mglru_map *map;
    uint64_t value = 0, taken = 0;

    IS(0, mglru_map_anon(group, 2 * MIB, &map));
    memset(mglru_map_start(map), 'r', 2 * MIB);
    /* One call may take less than it was asked for. */
    for (int tries = 0; tries < 100 && taken < MIB; tries++, taken += value)
        IS(0, mglru_group_reclaim(group, MIB, &value));
    TRUE(taken >= MIB);
    IS(0, mglru_map_get(map, "resident", &value));
    IS((long)(2 * MIB - taken), (long)value);
    IS(0, mglru_unmap(map));
}

/* Pages that are being read ahead are not there yet to be taken. */
static void page_out(mglru_map *map, size_t until)
{
    uint64_t value = 0;

    for (int tries = 0; tries < 100 && (tries == 0 || value != until); tries++) {
        IS(0, mglru_advise(map, 0, mglru_map_len(map), MGLRU_PAGEOUT));
        IS(0, mglru_map_get(map, "resident", &value));
    }
    IS((long)until, (long)value);
}

static void anonymous(mglru_group *group)
{
    mglru_map *map;
    uint64_t value = 0;

    IS(EINVAL, mglru_map_anon(group, 0, &map));
    IS(0, mglru_map_anon(group, 24 * MIB, &map));
    IS((long)(24 * MIB), (long)mglru_map_len(map));
    unsigned char *bytes = mglru_map_start(map);
    for (size_t at = 0; at < 24 * MIB; at += 64)
        bytes[at] = (unsigned char)(at / 64 * 31);
    for (size_t at = 0; at < 24 * MIB; at += 64)
        TRUE(bytes[at] == (unsigned char)(at / 64 * 31));
    IS(0, mglru_group_get(group, "memory.peak", &value));
    TRUE(value <= 6 * MIB);
    IS(0, mglru_map_get(map, "major", &value));
    TRUE(value > 0);
    IS(EINVAL, mglru_map_get(map, "minor", &value));

    IS(0, mglru_pin(map, 0, MIB));
    page_out(map, MIB);
    IS(0, mglru_unpin(map, 0, MIB));
    page_out(map, 0);
    IS(EINVAL, mglru_advise(map, 0, PAGE, 99));
    IS(EINVAL, mglru_advise(map, 24 * MIB, PAGE, MGLRU_COLD));
    IS(EINVAL, mglru_pin(map, PAGE, (size_t)-1));
    IS(EINVAL, mglru_discard(map, 1, PAGE));
    IS(0, mglru_discard(map, 0, MIB));
    TRUE(bytes[64] == 0 && bytes[MIB + 64] == (unsigned char)((MIB + 64) / 64 * 31));
    IS(0, mglru_unmap(map));
}

static void file(mglru_group *group)
{
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    mglru_map *map;
    char byte = 0;

    IS(0, ftruncate(fd, (off_t)(16 * MIB + 10)));
    IS(EINVAL, mglru_map_file(group, -1, MGLRU_READ, &map));
    IS(EINVAL, mglru_map_file(group, fd, MGLRU_WRITE, &map));
    IS(0, mglru_map_file(group, fd, MGLRU_READ | MGLRU_WRITE, &map));
    char *bytes = mglru_map_start(map);
    for (size_t at = 0; at < mglru_map_len(map); at += PAGE)
        bytes[at] = (char)(at / PAGE);
    IS(0, mglru_flush_range(map, 0, mglru_map_len(map)));
    bytes[5] = 'x';
    IS(0, mglru_write_back(map, 0, PAGE));
    IS(1, (long)pread(fd, &byte, 1, 5));
    IS('x', byte);
    bytes[16 * MIB + 9] = 'y';
    IS(0, mglru_unmap(map));
    IS(1, (long)pread(fd, &byte, 1, (off_t)(16 * MIB + 9)));
    IS('y', byte);
    close(fd);
}

struct mine {
    char *content;
    int synced, closed;
};

static int read_mine(void *user, uint64_t offset, void *to, size_t len)
{
    if (offset == 7 * PAGE)
        return EIO;
    memcpy(to, ((struct mine *)user)->content + offset, len);
    return 0;
}

static int write_mine(void *user, uint64_t offset, const void *from, size_t len)
{
    memcpy(((struct mine *)user)->content + offset, from, len);
    return 0;
}

static int sync_mine(void *user)
{
    ((struct mine *)user)->synced++;
    return 0;
}

static void close_mine(void *user)
{
    ((struct mine *)user)->closed++;
}

static void own_store(mglru_group *group)
{
    struct mine mine = { calloc(16, PAGE), 0, 0 };
    mglru_store store = { sizeof store, &mine, read_mine, write_mine, sync_mine, close_mine };
    mglru_map *map;

    store.read_at = NULL;
    IS(EINVAL, mglru_map_store(group, &store, 16 * PAGE, &map));
    IS(1, mine.closed);
    store.read_at = read_mine;
    strcpy(mine.content + 3 * PAGE, "as it was");
    IS(0, mglru_map_store(group, &store, 16 * PAGE, &map));
    char *bytes = mglru_map_start(map);
    TRUE(strcmp(bytes + 3 * PAGE, "as it was") == 0);
    strcpy(bytes + 4 * PAGE, "as it is");
    IS(0, mglru_flush_range(map, 0, 16 * PAGE));
    TRUE(strcmp(mine.content + 4 * PAGE, "as it is") == 0);
    TRUE(mine.synced > 0);
    /* What cannot be read is an error to a system call, and SIGBUS to a load. */
    int null = open("/dev/zero", O_RDONLY);
    IS(-1, (long)read(null, bytes + 7 * PAGE, 1));
    IS(EFAULT, errno);
    IS(0, mglru_unmap(map));
    IS(2, mine.closed);
    free(mine.content);
}

int main(void)
{
    TRUE(strlen(mglru_version()) > 0);
    mglru_pager *pager = open_pager();
    mglru_group *group = groups(pager);
    reclaim(group);
    anonymous(group);
    file(group);
    own_store(group);
    mglru_close(pager);
    mglru_group_close(group);
    IS(0, mglru_unmap(NULL));
    IS(EINVAL, mglru_flush_range(NULL, 0, 1));
    TRUE(mglru_map_start(NULL) == NULL && mglru_map_len(NULL) == 0);
    mglru_group_close(NULL);
    mglru_close(NULL);
    return 0;
}
