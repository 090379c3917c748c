/* Limits of address space, data, files and descriptors. */
#include "cases.h"

static void say_limit(int resource) {
    struct rlimit limit = {1, 1};
    int answer = getrlimit(resource, &limit);
    printf("%d %ld %ld\n", answer, (long)limit.rlim_cur, (long)limit.rlim_max);
}

static int has_room(size_t n) {
    byte *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return errno;
    fill(p, MB, 1);
    return munmap(p, n);
}

static void use(void) {
    printf("%d %d\n", has_room(64 * MB), has_room(1000 * MB));
    byte *p = malloc(4 * MB), *q = malloc(1000 * MB);
    fill(p, 4 * MB, 5);
    press();
    printf("%d %d\n", is_filled(p, 4 * MB, 5), q == 0);
    q = anon(4 * MB, PROT_READ | PROT_WRITE);
    SAY(mremap(q, 4 * MB, 1000 * MB, MREMAP_MAYMOVE, 0));
    SAY((q = mremap(q, 4 * MB, 8 * MB, MREMAP_MAYMOVE, 0)) == MAP_FAILED);
}

static int limited(int resource) {
    struct rlimit limit = {600 * MB, 700 * MB}, before;
    SAY(setrlimit(resource, &limit));
    say_limit(resource);
    use();
    limit.rlim_cur = 500 * MB;
    SAY(prlimit(0, resource, &limit, &before));
    printf("%ld %ld\n", (long)before.rlim_cur, (long)before.rlim_max);
    limit.rlim_cur = 800 * MB;
    SAY(setrlimit(resource, &limit));
    say_limit(resource);
    return 0;
}

static int address_space(byte *p) { return limited(RLIMIT_AS); }
static int data(byte *p) { return limited(RLIMIT_DATA); }

static void set_later(void) {
    filled(SOME, 1);
    SAY(in_child(address_space, 0));
    SAY(in_child(data, 0));
    limited(RLIMIT_AS);
    limited(RLIMIT_DATA);
    byte *p = filled(SOME, 1);
    press();
    SAY(is_filled(p, SOME, 1));
    char *args[] = {"sh", "-c", "ulimit -Sv; ulimit -Sd", 0}, *env[] = {0};
    execve("/bin/sh", args, env);
}

static void set_before_exec(void) {
    struct rlimit limit = {600 * MB, 700 * MB};
    setrlimit(RLIMIT_AS, &limit);
    char *args[] = {"sh", "-c", "ulimit -Sv", 0}, *env[] = {0};
    SAY(execve("/bin/no-such-program", args, env));
    say_limit(RLIMIT_AS);
    SAY(has_room(64 * MB));
    execve("/bin/sh", args, env);
}

static void set_at_start(void) {
    say_limit(RLIMIT_AS);
    use();
}

static void short_files(void) {
    say_limit(RLIMIT_FSIZE);
    byte *p = filled(32 * MB, 1);
    SAY(is_filled(p, 32 * MB, 1));
}

/* Mappings of files, and then as many descriptors as there are. */
static void many_files(void) {
    enum { FILES = 110 };
    byte *maps[FILES];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int right = 0, opened = 0;
    for (int i = 0; i < FILES; i++) {
        char name[] = "many-XXXXXX";
        int fd = mkstemp(name);
        ftruncate(fd, 2 * MB);
        maps[i] = mmap(0, 2 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (fd < 0 || maps[i] == MAP_FAILED) perror("a file"), exit(1);
        fill(maps[i], MB / 4, i);
        close(fd);
    }
    for (int i = 0; i < FILES; i++) right += is_filled(maps[i], MB / 4, i);
    while (open("/dev/null", O_RDONLY) >= 0) opened++;
    printf("%d %d\n", right, opened > (int)limit.rlim_cur / 2 - 16);
}

static const struct a_case CASES[] = {
    {"set_later", set_later},
    {"set_before_exec", set_before_exec},
    {"set_at_start", set_at_start},
    {"short_files", short_files},
    {"many_files", many_files},
    {0, 0},
};

int main(int n, char **args) { return n == 2 ? run_case(CASES, args[1]) : 5; }
