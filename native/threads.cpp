#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#if !defined(_WIN32)
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace tierrank {
namespace {

struct Job {
    const std::function<void(std::int64_t)> &work;
    const std::int64_t tasks;
    int helpers; // how many more threads may join
    int active = 0; // helpers at work
    std::atomic<std::int64_t> next{0};
    std::atomic_flag failed{};
    std::exception_ptr error{}; // the first

    // by every thread that takes part: one task after the other, until there are none
    void run() noexcept {
        try {
            for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) work(i);
        } catch (...) {
            if (!failed.test_and_set()) error = std::current_exception();
            next = tasks; // nobody begins another task
        }
    }
};

// torch's threads ---------------------------------------------------------------------------------

// Runs a function on so many threads at once: those that torch's own operations run on. It is the
// entry point that compilers call for OpenMP, and the name is looked up as torch's libraries do.
using Team = void (*)(void (*function)(void *), void *argument, unsigned threads, unsigned flags);

Team torch_threads() {
#if !defined(_WIN32)
    static std::atomic<Team> found{nullptr};
    Team team = found.load(std::memory_order_relaxed);
    if (!team) found = team = reinterpret_cast<Team>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
    return team;
#else
    return nullptr;
#endif
}

void run_by(Team team, Job &job) {
    team([](void *job) { static_cast<Job *>(job)->run(); }, &job, unsigned(job.helpers) + 1, 0);
}

// A pool of our own -------------------------------------------------------------------------------

class Pool {
  public:
    void run(Job &job) {
        {
            std::lock_guard lock(mutex_);
            for (; threads_ < job.helpers; ++threads_) std::thread(&Pool::help, this).detach();
            open_.push_back(&job);
        }
        wake_.notify_all();
        job.run();
        std::unique_lock lock(mutex_);
        open_.erase(std::remove(open_.begin(), open_.end(), &job), open_.end());
        done_.wait(lock, [&] { return job.active == 0; });
    }

  private:
    void help() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return !open_.empty(); });
            Job &job = *open_.front();
            ++job.active;
            if (--job.helpers == 0) open_.pop_front();
            lock.unlock();
            job.run();
            lock.lock();
            if (--job.active == 0) done_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::deque<Job *> open_;
    int threads_ = 0;
};

// Never destroyed: its threads wait on it until the process ends.
std::atomic<Pool *> the_pool{nullptr};

Pool &pool() {
    Pool *here = the_pool.load();
    if (here) return *here;
    Pool *made = new Pool;
    if (the_pool.compare_exchange_strong(here, made)) return *made;
    delete made;
    return *here;
}

// A forked child has the memory of both pools but none of their threads, and locks as they happened
// to be. torch's cannot be used there again; of ours it begins another one.
std::atomic<bool> forked{false};

#if !defined(_WIN32)
[[maybe_unused]] const int watching = pthread_atfork(nullptr, nullptr, [] {
    forked = true;
    the_pool = nullptr;
});
#endif

} // namespace

void parallel(std::int64_t tasks, int threads, const std::function<void(std::int64_t)> &work) {
    const int helpers = int(std::min<std::int64_t>(threads, tasks)) - 1;
    if (helpers < 1) {
        for (std::int64_t i = 0; i < tasks; ++i) work(i);
        return;
    }
    Job job{work, tasks, helpers};
    if (Team team = forked ? nullptr : torch_threads())
        run_by(team, job);
    else
        pool().run(job);
    if (job.error) std::rethrow_exception(job.error);
}

} // namespace tierrank
