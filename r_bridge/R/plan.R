#' How long intervals will be, before any data are touched
#'
#' By public numbers alone, so it costs no privacy. Give two of `n`, `epsilon` and `length`; the third is found.
#'
#' @param p number of variables.
#' @param n number of rows.
#' @param epsilon privacy loss of the release.
#' @param length wanted mean length of 95% intervals.
#' @param statistic,mechanism,delta as for [dp_release()]; `"auto"` takes what gives the shortest intervals.
#' @param coarse how many columns have few levels.
#' @return a data.frame of one row: `n`, `p`, `epsilon`, `delta`, `statistic`, `mechanism`, the expected mean `length`
#'   of 95% intervals, the expected absolute error `mae` of posterior means, and `coarse`.
#' @export
#' @examplesIf dp_available()
#' dp_plan(p = 7, n = 5820, epsilon = 1)
#' dp_plan(p = 7, n = 5820, length = 0.1)
dp_plan <- function(p, n = NULL, epsilon = NULL, length = NULL, statistic = "auto", mechanism = "auto", delta = 0,
                    coarse = 0) {
  options <- list(
    p = p, n = n, epsilon = epsilon, length = length, statistic = statistic, mechanism = mechanism, delta = delta,
    coarse = coarse
  )
  frame_from_python(door("plan", Filter(Negate(is.null), options)))
}
