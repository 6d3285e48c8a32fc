/* Sets the wall clock of one process: adds the seconds in the file $CLOCK_OFFSET to CLOCK_REALTIME. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, id, now);
    const char *path = getenv("CLOCK_OFFSET");
    if (result == 0 && id == CLOCK_REALTIME && path) {
        FILE *file = fopen(path, "r");
        long long offset = 0;
        if (file) {
            if (fscanf(file, "%lld", &offset) != 1) offset = 0;
            fclose(file);
        }
        now->tv_sec += offset;
    }
    return (int)result;
}
