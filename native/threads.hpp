// Work shared between threads: a pool of our own, because torch's cannot be reached from here.
#pragma once

#include <cstdint>
#include <functional>

namespace tierrank {

// Calls work(0) … work(tasks − 1), each once, on at most so many threads; the calling one works too,
// and leaves to the others what they get hold of in time: right after a parallel operation of torch,
// whose threads keep spinning, they may be late. Which thread does what must not change a result.
// Any thread may call it, also several at once, and the child of a fork. Not from within `work`.
void parallel(std::int64_t tasks, int threads, const std::function<void(std::int64_t)> &work);

} // namespace tierrank
