#' Methods of posteriors
#'
#' A `dp_posterior` comes from [dp_bayes_na()] (private) or [dp_erl()] (not private; its print says so). It is an
#' ordinary list that can be saved with [saveRDS()]. Correlations are those of latent standard normal variables.
#'
#' @param x,object a `dp_posterior`.
#' @param parm pairs to return: numbers, or names such as `"a ~ b"`; all by default.
#' @param level,prob posterior probability of the equal-tailed intervals.
#' @param joint whether to return the joint draws.
#' @param row.names,optional ignored.
#' @param ... for `plot()`, further arguments of [graphics::plot.default()]; otherwise ignored.
#' @return `summary()` and `as.data.frame()`: a data.frame, one row a pair, with mean, sd, interval, effective
#'   sample sizes and R-hat. `coef()`: posterior means, named by pair. `confint()`: a matrix of intervals.
#'   `dp_correlation()`: the p x p posterior mean. `dp_draws()`: an array, chain x draw x p x p; with `joint = TRUE`
#'   the joint draws that [dp_regress()] uses, or `NULL`. `as_draws()`: a `draws_array` of package posterior.
#' @name dp_posterior-methods
#' @examplesIf dp_available()
#' posterior <- dp_erl(mtcars, c("mpg", "wt", "hp"), engine = "native", draws = 500, seed = 1)
#' coef(posterior)
#' confint(posterior, level = 0.9)
#' dp_correlation(posterior)
#' plot(posterior)
NULL

new_result <- function(answer) {
  answer$values <- unlist(answer$values)
  answer$joint <- as.double(unlist(answer$joint))
  answer$variables <- unlist(answer$variables)
  answer$labels <- labels_from_python(answer$labels)
  structure(answer, class = c(paste0("dp_", answer$kind), "dp_result"))
}

# What crosses back: a plain list without class.
result_to_python <- function(x) {
  check_class(x, "dp_result")
  x <- unclass(x)
  x$variables <- as.list(x$variables)
  x$labels <- labels_to_python(x$labels)
  x
}

#' @export
print.dp_result <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname dp_posterior-methods
#' @export
summary.dp_posterior <- function(object, prob = 0.95, ...) {
  frame_from_python(door("summary", result_to_python(object), prob))
}

#' @export
summary.dp_estimate <- function(object, ...) frame_from_python(door("summary", result_to_python(object), 0.95))

#' @rdname dp_posterior-methods
#' @export
as.data.frame.dp_posterior <- function(x, row.names = NULL, optional = FALSE, ...) summary(x)

#' @export
as.data.frame.dp_estimate <- function(x, row.names = NULL, optional = FALSE, ...) summary(x)

#' @rdname dp_posterior-methods
#' @export
coef.dp_posterior <- function(object, ...) colMeans(pair_draws(object))

#' @export
coef.dp_estimate <- function(object, ...) pair_draws(object)[1, ]

#' @rdname dp_posterior-methods
#' @export
confint.dp_posterior <- function(object, parm, level = 0.95, ...) intervals(pair_draws(object), parm, level)

#' @rdname dp_posterior-methods
#' @export
plot.dp_posterior <- function(x, level = 0.95, ...) {
  forest(coef(x), confint(x, level = level), title_of(x, level), xlim = c(-1, 1), ...)
  invisible(x)
}

#' @rdname dp_posterior-methods
#' @export
dp_correlation <- function(x) {
  check_class(x, "dp_result")
  p <- length(x$variables)
  R <- diag(p)
  R[lower.tri(R)] <- coef(x)
  R[upper.tri(R)] <- t(R)[upper.tri(R)]
  dimnames(R) <- list(x$variables, x$variables)
  R
}

#' @rdname dp_posterior-methods
#' @export
dp_draws <- function(x, joint = FALSE) {
  check_class(x, "dp_posterior")
  p <- length(x$variables)
  if (joint && !length(x$joint)) return(NULL)
  pairs <- array(if (joint) x$joint else x$values, c(p * (p - 1) / 2, x$draws, x$chains))
  index <- matrix(0L, p, p)
  index[lower.tri(index)] <- seq_len(p * (p - 1) / 2)
  index <- index + t(index)
  full <- array(1, c(x$chains, x$draws, p, p))
  for (j in seq_len(p)) {
    for (k in setdiff(seq_len(p), j)) full[, , j, k] <- t(pairs[index[j, k], , ])
  }
  dimnames(full) <- list(NULL, NULL, x$variables, x$variables)
  full
}

#' @rdname dp_posterior-methods
#' @exportS3Method posterior::as_draws
as_draws.dp_posterior <- function(x, ...) {
  pairs <- array(x$values, c(length(pair_names(x)), x$draws, x$chains))
  draws <- aperm(pairs, c(2, 3, 1))
  dimnames(draws) <- list(NULL, NULL, pair_names(x))
  posterior::as_draws_array(draws)
}

# Draws of all chains in rows, pairs in columns.
pair_draws <- function(x) {
  matrix(x$values, ncol = length(pair_names(x)), byrow = TRUE, dimnames = list(NULL, pair_names(x)))
}

pair_names <- function(x) {
  p <- length(x$variables)
  first <- rep(seq_len(p - 1), seq.int(p - 1, 1))
  second <- unlist(lapply(seq_len(p - 1), function(j) seq.int(j + 1, p)))
  paste(x$variables[first], "~", x$variables[second])
}

# Equal-tailed intervals of columns; the quantile at q of N draws is taken at position (N + 1) q, as in Python.
intervals <- function(draws, parm, level) {
  if (!(is.numeric(level) && length(level) == 1 && level > 0 && level < 1)) {
    stop("`level` must be one number between 0 and 1", call. = FALSE)
  }
  tails <- c((1 - level) / 2, (1 + level) / 2)
  bounds <- t(apply(draws, 2, stats::quantile, probs = tails, type = 6, names = FALSE))
  colnames(bounds) <- paste(format(100 * tails, trim = TRUE, digits = 3), "%")
  if (missing(parm)) bounds else bounds[parm, , drop = FALSE]
}
