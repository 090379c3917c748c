// Fills a shared mapping of a file and ends in one of many ways. Prints nothing.
// ends FILE WAY
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEN (8 << 20)

static void *leave(void *unused) {
    exit(0);
}

int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (argc < 3 || ftruncate(fd, LEN)) return 3;
    char *map = mmap(0, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(map, 'x', LEN);
    const char *way = argv[2];
#define WAY(name) if (!strcmp(way, name))
    WAY("return") return 0;
    WAY("exit") exit(0);
    WAY("_exit") _exit(0);
    WAY("_Exit") _Exit(0);
    WAY("quick_exit") quick_exit(0);
    WAY("raw exit_group") syscall(SYS_exit_group, 0);
    WAY("exit in a thread") {
        pthread_t thread;
        pthread_create(&thread, 0, leave, 0);
        pause();
    }
    WAY("execl") execl("/bin/true", "true", NULL);
    WAY("execlp") execlp("sh", "sh", "-c", "exit 7", NULL);
    WAY("execl, many") execl("/bin/sh", "sh", "-c", "exit $(($# + $6))", "0", "1", "2", "3", "4", "5", "6", "7", NULL);
    WAY("execle") {
        char *env[] = {"STATUS=11", 0};
        execle("/bin/sh", "sh", "-c", "exit $STATUS", NULL, env);
    }
    WAY("execle, many") {
        char *env[] = {"STATUS=12", 0};
        execle("/bin/sh", "sh", "-c", "exit $(($STATUS + $4))", "0", "1", "2", "3", "4", NULL, env);
    }
    WAY("execv") execv("/bin/true", (char *[]){"true", 0});
    WAY("execvp") execvp("true", (char *[]){"true", 0});
    WAY("raw execve") syscall(SYS_execve, "/bin/true", (char *[]){"true", 0}, NULL);
    WAY("abort") abort();
    WAY("fault") *(volatile int *)0 = 1;
    WAY("trap") __builtin_trap();
    WAY("SIGTERM") kill(getpid(), SIGTERM);
    WAY("SIGINT") raise(SIGINT);
    WAY("SIGPIPE") kill(getpid(), SIGPIPE);
    WAY("SIGRTMIN+3") kill(getpid(), SIGRTMIN + 3);
    WAY("alarm") {
        alarm(1);
        pause();
    }
    WAY("raw kill") syscall(SYS_kill, getpid(), SIGTERM);
    WAY("SIGTERM again by default") {
        signal(SIGTERM, SIG_IGN);
        if (signal(SIGTERM, SIG_DFL) != SIG_IGN) return 4;
        kill(getpid(), SIGTERM);
    }
    WAY("SIGKILL") kill(getpid(), SIGKILL);
    WAY("munmap, killed") munmap(map, LEN);
    WAY("close, killed") close(fd);
    WAY("sync, killed") sync();
    WAY("syncfs, killed") syncfs(fd);
    WAY("fsync, killed") fsync(fd);
    WAY("msync async, killed") msync(map, LEN, MS_ASYNC);
    // From outside: no library sees it.
    if (strstr(way, "killed")) {
        pid_t me = getpid();
        if (!fork()) {
            syscall(SYS_kill, me, SIGKILL);
            _exit(0);
        }
        pause();
    }
    return 9;
}
