// Work shared between threads: torch's own, because those spin for a while after an operation of
// torch's, and any others would have to wait for a core; or a pool, where torch has none that can be
// reached (other systems) or none that is alive (after a fork).
#pragma once

#include <cstdint>
#include <functional>

namespace tierrank {

// Calls work(0) … work(tasks − 1), each once, on at most so many threads; the calling one works too.
// Which thread does what must not change a result. Any thread may call it, also several at once, and
// the child of a fork. Not from within `work`.
void parallel(std::int64_t tasks, int threads, const std::function<void(std::int64_t)> &work);

} // namespace tierrank
