# The extended rank likelihood of Hoff (2007) in plain R: one chain, with the contract of
# sbgcop::sbgcop.mcmc, and the care that a chain needs around it. Python sources this file through rpy2 and
# runs sbgcop through the same functions, so that both engines take one path.

#' One chain of the extended rank likelihood sampler
#'
#' Latent rows are normal with mean 0 and covariance S, S is inverse Wishart (n0, n0 S0), and within every
#' column the latent values must keep the order of the data. Each iteration visits the columns in random order
#' and each level of a column in ascending order, then draws S.
#'
#' @param Y numeric matrix, n x p; `NA` where missing. Only the order within columns matters.
#' @param S0,n0 prior scale matrix and degrees of freedom.
#' @param nsamp number of iterations, with no burn-in.
#' @param odens iterations between kept correlation matrices.
#' @param plugin.threshold columns with more distinct values than this (`NA` counts as one) keep their normal
#'   scores; `Inf` draws the latent values of every column.
#' @param seed seed of R's generator.
#' @return a list with `C.psamp`, the kept correlation matrices, p x p x (nsamp / odens).
#' @references Hoff (2007), Annals of Applied Statistics 1, 265-283.
#' @noRd
erl_chain <- function(Y, S0 = diag(ncol(Y)), n0 = ncol(Y) + 2, nsamp = 100,
                      odens = max(1, round(nsamp / 1000)), plugin.threshold = 100, seed = 1) {
  set.seed(seed)
  columns <- lapply(seq_len(ncol(Y)), function(j) erl_column(Y[, j], plugin.threshold))
  Z <- vapply(columns, function(column) column$scores, numeric(nrow(Y)))
  Z[is.na(Z)] <- stats::rnorm(sum(is.na(Z)))
  S <- (n0 * S0 + crossprod(Z)) / (n0 + nrow(Y))
  kept <- array(0, c(ncol(Y), ncol(Y), nsamp %/% odens))
  for (iteration in seq_len(nsamp)) {
    for (j in sample(ncol(Y))) {
      column <- columns[[j]]
      if (!column$drawn) next
      weights <- solve(S[-j, -j, drop = FALSE], S[-j, j])
      sd <- sqrt(S[j, j] - sum(weights * S[-j, j]))
      mean <- drop(Z[, -j, drop = FALSE] %*% weights)
      Z[, j] <- erl_draw_column(Z[, j], mean, sd, column)
    }
    S <- solve(rwishart_one(n0 + nrow(Y), solve(n0 * S0 + crossprod(Z))))
    if (iteration %% odens == 0) kept[, , iteration %/% odens] <- stats::cov2cor(S)
  }
  list(C.psamp = kept)
}

# Sort a column once: its levels as row numbers in ascending order, its missing rows, its normal scores.
erl_column <- function(y, plugin.threshold) {
  observed <- which(!is.na(y))
  ranks <- rank(y[observed], ties.method = "max")
  scores <- rep(NA_real_, length(y))
  scores[observed] <- stats::qnorm(ranks / (length(observed) + 1))
  plugin <- length(unique(y)) > plugin.threshold
  missing <- setdiff(seq_along(y), observed)
  list(
    scores = scores,
    missing = missing,
    levels = if (plugin) list() else unname(split(observed, ranks)),
    drawn = !plugin || length(missing) > 0
  )
}

# Draw the latent values of one column: level by level between its neighbours, then the missing ones.
erl_draw_column <- function(z, mean, sd, column) {
  levels <- column$levels
  below <- -Inf
  for (level in seq_along(levels)) {
    rows <- levels[[level]]
    above <- if (level < length(levels)) min(z[levels[[level + 1]]]) else Inf
    z[rows] <- rtruncnorm_between(mean[rows], sd, below, above)
    below <- max(z[rows])
  }
  rows <- column$missing
  z[rows] <- mean[rows] + sd * stats::rnorm(length(rows))
  z
}

# Normal draws kept to (below, above): the cdf is inverted in logarithms, on the side where it is small, so
# that far tails stay accurate.
rtruncnorm_between <- function(mean, sd, below, above) {
  a <- (below - mean) / sd
  b <- (above - mean) / sd
  flip <- a > 0
  low <- a
  low[flip] <- -b[flip]
  high <- b
  high[flip] <- -a[flip]
  log_low <- stats::pnorm(low, log.p = TRUE)
  log_high <- stats::pnorm(high, log.p = TRUE)
  u <- stats::runif(length(mean))
  x <- stats::qnorm(log_high + log1p(-u * -expm1(log_low - log_high)), log.p = TRUE)
  x[flip] <- -x[flip]
  pmin(pmax(mean + sd * x, below), above)
}

rwishart_one <- function(df, scale) {
  stats::rWishart(1, df, scale)[, , 1]
}

#' Correlation draws of one chain, by sbgcop or by the code above
#'
#' R's generator and its state are as before when this ends, however it ends.
#'
#' @param engine "sbgcop" or "r".
#' @return array of correlation matrices, p x p x (nsamp / odens).
#' @noRd
erl_draws <- function(engine, Y, S0, n0, nsamp, odens, plugin.threshold, seed) {
  old_kinds <- RNGkind()
  old_seed <- get0(".Random.seed", envir = globalenv(), inherits = FALSE)
  on.exit({
    suppressWarnings(RNGkind(old_kinds[1], old_kinds[2], old_kinds[3]))
    if (is.null(old_seed)) {
      rm(list = intersect(".Random.seed", ls(globalenv(), all.names = TRUE)), envir = globalenv())
    } else {
      assign(".Random.seed", old_seed, envir = globalenv())
    }
  })
  RNGkind("Mersenne-Twister", "Inversion", "Rejection") # the same seed, the same draws, whatever R was set to
  Y[is.na(Y)] <- NA_real_ # NaN from outside R counts as missing, and as one distinct value
  fit <- if (identical(engine, "sbgcop")) {
    sbgcop::sbgcop.mcmc(
      Y,
      S0 = S0, n0 = n0, nsamp = nsamp, odens = odens, impute = FALSE,
      plugin.threshold = plugin.threshold, seed = seed, verb = FALSE
    )
  } else {
    erl_chain(Y, S0, n0, nsamp, odens, plugin.threshold, seed)
  }
  if (is.null(fit)) stop(engine, " returned nothing", call. = FALSE)
  fit$C.psamp
}
