// Bayes-NA with the likelihood tabulated: the posterior of bayes_na.stan at a small part of its cost.
//
// log Pr(t_tilde[i] | R) depends on R through the log odds ratio eta of pair i alone. It comes as data: its value
// and first two derivatives in eta at nodes dense enough that the quintic through them is exact to about 1e-10.
// Neighbouring quintics agree in value, slope and curvature, so the density is smooth where one cell meets the next.

functions {
  /* Log odds ratio of a pair's median-split table, from two rows of the Cholesky factor; as in bayes_na.stan. */
  real log_odds(row_vector a, row_vector b) {
    real apart = distance(a, b);
    real together = distance(a, -b);
    return 2 * (log(atan2(together, apart)) - log(atan2(apart, together)));
  }

  /* Number of the last of the nodes first..last that is not above eta, for node[first] <= eta < node[last]. */
  int cell_of(real eta, data vector node, int first, int last) {
    int low = first;
    int high = last;
    while (high - low > 1) {
      int middle = low + (high - low) %/% 2;
      if (node[middle] <= eta) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /* Coefficients, lowest first, in s = (eta - left end) / width of the quintic with both ends' jets. */
  vector quintic(row_vector left, row_vector right, real width) {
    real rise = right[1] - left[1];
    real a1 = left[2] * width;
    real b1 = right[2] * width;
    real a2 = left[3] * square(width) / 2;
    real b2 = right[3] * square(width) / 2;
    return [left[1], a1, a2,
            10 * rise - 6 * a1 - 4 * b1 - 3 * a2 + b2,
            -15 * rise + 8 * a1 + 7 * b1 + 3 * a2 - 2 * b2,
            6 * rise - 3 * a1 - 3 * b1 - a2 + b2]';
  }
}
data {
  int<lower=2> p; // variables
  int<lower=2> N; // nodes of all pairs together
  array[(p * (p - 1)) %/% 2 + 1] int<lower=1, upper=N + 1> start; // pair i has the nodes start[i] .. start[i + 1] - 1
  vector[N] node; // in eta, increasing within a pair
  matrix[N, 3] jet; // log likelihood there, and its first two derivatives
}
transformed data {
  array[N] vector[6] cell; // of the cell that begins at each node; the last node of a pair begins none
  for (i in 1 : N) {
    cell[i] = rep_vector(0, 6);
  }
  for (i in 1 : (size(start) - 1)) {
    for (l in start[i] : (start[i + 1] - 2)) {
      cell[l] = quintic(jet[l], jet[l + 1], node[l + 1] - node[l]);
    }
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
      real eta = log_odds(L[j], L[k]);
      int first = start[i];
      int last = start[i + 1] - 1;
      if (eta <= node[first]) {
        target += jet[first, 1]; // the ends lie where the likelihood has become flat
      } else if (eta >= node[last]) {
        target += jet[last, 1];
      } else {
        int l = cell_of(eta, node, first, last);
        real s = (eta - node[l]) / (node[l + 1] - node[l]);
        vector[6] c = cell[l];
        target += c[1] + s * (c[2] + s * (c[3] + s * (c[4] + s * (c[5] + s * c[6]))));
      }
      i += 1;
    }
  }
}
generated quantities {
  corr_matrix[p] R = multiply_lower_tri_self_transpose(L);
}
