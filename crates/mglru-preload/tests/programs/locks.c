/* Memory that is locked. */
#include "cases.h"

static int is_resident(byte *p, size_t n) {
    byte *found = malloc(n / PAGE);
    int answer = mincore(p, n, found);
    for (size_t i = 0; i < n / PAGE; i++)
        if (!(found[i] & 1)) answer = 2;
    free(found);
    return answer;
}

static void within(void) {
    byte *p = filled(4 * MB, 1);
    SAY(mlock(p, 4 * MB));
    press();
    SAY(is_resident(p, 4 * MB));
    SAY(is_filled(p, 4 * MB, 1));
    SAY(munlock(p, 4 * MB));
    press();
    SAY(is_filled(p, 4 * MB, 1));
}

/* What is moved, or made longer, stays locked. */
static void moved(void) {
    byte *p = filled(2 * MB, 1), *to = anon(4 * MB, PROT_READ | PROT_WRITE);
    SAY(mlock(p, 2 * MB));
    SAY(mremap(p, 2 * MB, 4 * MB, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    fill(to, 4 * MB, 2);
    press();
    SAY(is_resident(to, 4 * MB));
    SAY(is_filled(to, 4 * MB, 2));
}

static void beyond(void) {
    byte *p = filled(32 * MB, 1);
    SAY(mlock(p, 32 * MB));
    press();
    SAY(is_filled(p, 32 * MB, 1));
    byte *q = filled(16 * MB, 2);
    SAY(mlock2(q, 16 * MB, MLOCK_ONFAULT));
    SAY(is_filled(q, 16 * MB, 2) + is_filled(p, 32 * MB, 1));
    SAY(munlock(p, 32 * MB));
}

static void beyond_of_a_file(void) {
    char name[] = "locks-XXXXXX";
    int fd = mkstemp(name);
    byte *content = filled(32 * MB, 1);
    pwrite(fd, content, 32 * MB, 0);
    byte *p = mmap(0, 32 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    SAY(mlock(p, 32 * MB));
    fill(p, 16 * MB, 2);
    press();
    SAY(is_filled(p, 16 * MB, 2));
    SAY(munlock(p, 32 * MB));
}

static void all(void) {
    byte *p = filled(32 * MB, 1);
    SAY(mlockall(MCL_CURRENT));
    press();
    SAY(is_filled(p, 32 * MB, 1));
    SAY(munlockall());
    press();
    SAY(is_filled(p, 32 * MB, 1));
    SAY(mlockall(0));
    SAY(mlockall(77));
    SAY(mlockall(MCL_ONFAULT));
}

static int lock_all(byte *p) {
    int answer = mlockall(MCL_CURRENT | MCL_FUTURE);
    return answer ? 1 : is_filled(p, SOME, 1) + 2 * is_resident(anon(SOME, PROT_READ), SOME);
}

static void all_to_come(void) {
    byte *p = filled(SOME, 1);
    press();
    SAY(in_child(lock_all, p));
    SAY(mlockall(MCL_CURRENT | MCL_FUTURE));
    byte *q = anon(16 * MB, PROT_READ | PROT_WRITE);
    SAY(is_resident(q, 16 * MB));
    fill(q, 16 * MB, 2);
    SAY(is_filled(p, SOME, 1) + is_filled(q, 16 * MB, 2));
    SAY(in_child(lock_all, p));
    SAY(munlockall());
    byte *r = filled(SOME, 3);
    press();
    SAY(is_filled(p, SOME, 1) + is_filled(q, 16 * MB, 2) + is_filled(r, SOME, 3));
}

static const struct a_case CASES[] = {
    {"within", within},
    {"moved", moved},
    {"beyond", beyond},
    {"beyond_of_a_file", beyond_of_a_file},
    {"all", all},
    {"all_to_come", all_to_come},
    {0, 0},
};

int main(int n, char **args) { return n == 2 ? run_case(CASES, args[1]) : 5; }
