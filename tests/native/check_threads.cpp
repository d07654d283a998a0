// The pool of threads: every task once, from several callers at once, with errors, and after a fork. Built
// with TIERRANK_SANITIZE=thread, two threads that touch the same memory without a lock stop it.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "threads.hpp"

// ThreadSanitizer ends a child of a fork that starts threads, unless it is told not to.
extern "C" [[gnu::visibility("default")]] const char *__tsan_default_options() { return "die_after_fork=0"; }

namespace {

constexpr std::int64_t TASKS = 200;

void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::_Exit(1);
}

// plain memory that two tasks share must not be touched by both at once: each has an entry of its own
void every_task_once(int threads) {
    std::vector<int> times(TASKS, 0);
    tierrank::parallel(TASKS, threads, [&](std::int64_t i) { ++times[std::size_t(i)]; });
    require(std::accumulate(times.begin(), times.end(), 0) == TASKS, "a task was left out, or done twice");
    for (const int one : times) require(one == 1, "a task was done twice");
}

void error_reaches_the_caller(int threads) {
    std::atomic<int> begun{0};
    bool caught = false;
    try {
        tierrank::parallel(TASKS, threads, [&](std::int64_t i) {
            ++begun;
            if (i == 7) throw std::runtime_error("seven");
        });
    } catch (const std::runtime_error &error) {
        caught = std::string("seven") == error.what();
    }
    require(caught && begun <= TASKS, "an error did not reach its caller");
}

void several_callers_at_once() {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller)
        callers.emplace_back([caller] {
            for (int round = 0; round < 100; ++round) {
                every_task_once(1 + (caller + round) % 4);
                if (round % 10 == caller) error_reaches_the_caller(2 + caller % 2);
            }
        });
    for (std::thread &caller : callers) caller.join();
}

void child_of_a_fork() {
    const pid_t child = fork();
    if (child == 0) {
        for (int round = 0; round < 20; ++round) every_task_once(3);
        std::_Exit(0);
    }
    int status = -1;
    require(child > 0 && waitpid(child, &status, 0) == child, "no fork");
    require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child of a fork failed");
}

} // namespace

int main() {
    for (int threads = -1; threads <= 4; ++threads) every_task_once(threads);
    several_callers_at_once();
    child_of_a_fork();
    several_callers_at_once(); // the parent goes on
    std::printf("threads: every task once, from four callers at once, with errors, and after a fork\n");
}
