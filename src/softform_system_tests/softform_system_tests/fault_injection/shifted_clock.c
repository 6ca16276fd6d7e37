/* The time of day of one process, shifted by what a file says, at any moment: preloaded by the fault injection, since
 * only root may set the clock of a machine. The file named by SOFTFORM_CLOCK_SHIFT holds two int64, nanoseconds: of the
 * time of day, and of the time since the boot, which goes on while a computer sleeps. Steady clocks are left alone. Waits until a time of day are shifted back, since the kernel does not know of this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long NS = 1000000000L;
static const long LATEST_UPTIME = 500000000L; /* s; a deadline beyond it is a time of day */
static const volatile int64_t *shift;

__attribute__((constructor)) static void map_shift(void) {
    const char *path = getenv("SOFTFORM_CLOCK_SHIFT");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) shift = mapped;
    close(file);
}

static void add(struct timespec *t, int64_t nanoseconds) {
    int64_t sum = t->tv_nsec + nanoseconds % NS;
    t->tv_sec += nanoseconds / NS + (sum >= NS) - (sum < 0);
    t->tv_nsec = (sum + NS) % NS;
}

static struct timespec deadline_of(const struct timespec *given) {
    struct timespec deadline = *given;
    if (shift && deadline.tv_sec > LATEST_UPTIME) add(&deadline, -shift[0]);
    return deadline;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int clock_gettime(clockid_t clock, struct timespec *t) {
    static __typeof__(&clock_gettime) real;
    if (!real) real = REAL(clock_gettime);
    int result = real(clock, t);
    if (!result && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) add(t, shift[0]);
    if (!result && shift && clock == CLOCK_BOOTTIME) add(t, shift[1]);
    return result;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict t) {
    static __typeof__(&pthread_cond_timedwait) real;
    if (!real) real = REAL(pthread_cond_timedwait);
    struct timespec deadline = deadline_of(t);
    return real(c, m, &deadline);
}

int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t) {
    static __typeof__(&sem_timedwait) real;
    if (!real) real = REAL(sem_timedwait);
    struct timespec deadline = deadline_of(t);
    return real(s, &deadline);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict t) {
    static __typeof__(&pthread_mutex_timedlock) real;
    if (!real) real = REAL(pthread_mutex_timedlock);
    struct timespec deadline = deadline_of(t);
    return real(m, &deadline);
}
