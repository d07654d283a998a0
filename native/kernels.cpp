// Compiled once for every set of instructions, into a namespace of its own.
#include "kernels.hpp"

#include "cross_entropy.hpp"
#include "expected_dcg.hpp"
#include "hessian.hpp"
#include "lists.hpp"
#include "metric_pairs.hpp"
#include "pairs.hpp"
#include "products.hpp"
#include "stages.hpp"
#include "tied_lists.hpp"

namespace tierrank::TIERRANK_SET {

template <class T>
constexpr KernelsFor<T> made{&log_prob<T>,       &hessian_product<T>, &staged_log_prob<T>,
                             &cross_entropy<T>,  &inner_products<T>,  &pair_sums<T>,
                             &block_pair_sums<T>};

#define TIERRANK_NAME_OF(set) #set
#define TIERRANK_NAME(set) TIERRANK_NAME_OF(set)
extern const Kernels kernels;
const Kernels kernels{TIERRANK_NAME(TIERRANK_SET), made<float>, made<double>, &tied_terms,
                      &lambda_loss, &approx_ndcg, &expected_dcg};

} // namespace tierrank::TIERRANK_SET
