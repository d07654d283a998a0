#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace tierrank {
namespace {

struct Job {
    Job(const std::function<void(std::int64_t)> *work, std::int64_t tasks, int helpers)
        : work(work), tasks(tasks), helpers(helpers) {}

    const std::function<void(std::int64_t)> *work;
    std::int64_t tasks;
    int helpers; // how many more threads may join
    std::atomic<std::int64_t> next{0};
    int active = 0;           // helpers at work
    std::exception_ptr error; // the first, of a helper

    void run() {
        for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) (*work)(i);
    }
};

class Pool {
  public:
    void run(Job &job) {
        const int wanted = job.helpers; // those who join count it down
        {
            std::lock_guard lock(mutex_);
            for (; threads_ < wanted; ++threads_) std::thread(&Pool::help, this).detach();
            open_.push_back(&job);
        }
        for (int i = 0; i < wanted; ++i) wake_.notify_one();
        std::exception_ptr error;
        try {
            job.run();
        } catch (...) {
            error = std::current_exception();
            job.next = job.tasks; // nobody begins another task
        }
        std::unique_lock lock(mutex_);
        open_.erase(std::remove(open_.begin(), open_.end(), &job), open_.end());
        done_.wait(lock, [&] { return job.active == 0; });
        if (!error) error = job.error;
        if (error) std::rethrow_exception(error);
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
            std::exception_ptr error;
            try {
                job.run();
            } catch (...) {
                error = std::current_exception();
                job.next = job.tasks;
            }
            lock.lock();
            if (error && !job.error) job.error = error;
            if (--job.active == 0) done_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::deque<Job *> open_;
    int threads_ = 0;
};

// Never destroyed: its threads wait on it until the process ends. A forked child has the memory of a
// pool but not its threads, and its locks as they happened to be: it begins another one.
std::atomic<Pool *> the_pool{nullptr};

Pool &pool() {
    Pool *here = the_pool.load();
    if (!here) {
#if !defined(_WIN32) // before there is a pool: another thread may fork at any moment
        static std::once_flag once;
        std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { the_pool = nullptr; }); });
#endif
        Pool *made = new Pool;
        if (the_pool.compare_exchange_strong(here, made)) {
            here = made;
        } else {
            delete made;
        }
    }
    return *here;
}

} // namespace

void parallel(std::int64_t tasks, int threads, const std::function<void(std::int64_t)> &work) {
    const int helpers = int(std::min<std::int64_t>(threads, tasks)) - 1;
    if (helpers < 1) {
        for (std::int64_t i = 0; i < tasks; ++i) work(i);
        return;
    }
    Job job(&work, tasks, helpers);
    pool().run(job);
}

} // namespace tierrank
