// Bayes-NA: noise-aware Bayesian inference for Gaussian copula correlations from noisy median-quadrant counts
// (Wang, Feldman and Reiter, arXiv 2601.03497; equation numbers are the paper's).
//
// For pair i of the p(p-1)/2 pairs, row by row above the diagonal of R, the model is
//   R ~ LKJ(1)                                        prior
//   t[i] | R ~ Pr(t | R)                              count of rows high in both variables, eqs. 10 and 11
//   t_tilde[i] | t[i] ~ mechanism                     the count that was released
// The true counts are summed out, eq. 17, and pairs are multiplied as if independent, eq. 18.

functions {
  /* Log odds ratio of a pair's median-split table: eta = 2 log((1 + u) / (1 - u)), u = (2 / pi) asin(r), eqs. 8, 9.
   *
   * (1 + u) / (1 - u) is acos(-r) / acos(r), and acos(r) is the angle between two rows of the Cholesky factor.
   * Half of it is atan2(|a - b|, |a + b|), which keeps its precision where r itself has rounded to 1 or -1.
   */
  real log_odds(row_vector a, row_vector b) {
    real apart = distance(a, b);
    real together = distance(a, -b);
    return 2 * (log(atan2(together, apart)) - log(atan2(apart, together)));
  }
}
data {
  int<lower=4> n; // rows
  int<lower=2> p; // variables
  // log Pr(t_tilde[i] | t): one line a pair, one column for each possible true count t.
  matrix[(p * (p - 1)) %/% 2, n %/% 2 + 1] log_noise;
}
transformed data {
  int high = (n + 1) %/% 2; // rows in the upper half of a variable
  int size = n %/% 2 + 1;
  row_vector[size] t; // all possible true counts
  row_vector[size] log_weight; // log C(high, t) C(n - high, high - t): eq. 10, exact for odd n too
  for (i in 1 : size) {
    int count = 2 * high - n + i - 1;
    t[i] = count;
    log_weight[i] = lchoose(high, count) + lchoose(n - high, high - count);
  }
}
parameters {
  cholesky_factor_corr[p] L;
}
model {
  int i = 1;
  L ~ lkj_corr_cholesky(1);
  for (j in 1 : (p - 1)) {
    for (k in (j + 1) : p) {
      row_vector[size] log_term = log_weight + log_odds(L[j], L[k]) * t;
      // The second term is the normalising constant of eq. 11. It depends on R: without it this is another model.
      target += log_sum_exp(log_noise[i] + log_term) - log_sum_exp(log_term);
      i += 1;
    }
  }
}
generated quantities {
  corr_matrix[p] R = multiply_lower_tri_self_transpose(L);
}
