#' Set results side by side
#'
#' Each result is held against the first that is not private, or against the first. A comparison that holds a
#' result that is not private is itself not private, and says so when printed and plotted.
#'
#' @param ... two or more `dp_posterior` or `dp_estimate` about the same variables; their names, if given, are
#'   what they are called.
#' @param prob posterior probability of the intervals.
#' @param x,object a `dp_comparison`.
#' @param row.names,optional ignored.
#' @return a `dp_comparison`. `summary()`: one row a pair, the results side by side. `as.data.frame()`: one row a
#'   pair and result, with estimate, interval, whether it holds the reference's estimate, overlap and length
#'   ratio.
#' @export
#' @examplesIf dp_available()
#' cars <- mtcars[c("mpg", "wt", "hp")]
#' erl <- dp_erl(cars, engine = "native", draws = 500, seed = 1)
#' release <- suppressWarnings(dp_release(cars, epsilon = 5))
#' both <- dp_compare(private = dp_bayes_na(release, draws = 500, seed = 1), yardstick = erl)
#' both
#' plot(both)
dp_compare <- function(..., prob = 0.95) {
  results <- list(...)
  names <- names(results)
  if (!is.null(names) && all(names != "")) names <- as.list(names) else names <- NULL
  answer <- door("compare", unname(lapply(results, result_to_python)), prob, names)
  structure(
    list(
      names = unlist(answer$names), reference = answer$reference, private = answer$private, prob = answer$prob,
      frame = frame_from_python(answer$frame), table = frame_from_python(answer$summary), text = answer$text
    ),
    class = "dp_comparison"
  )
}

#' @export
print.dp_comparison <- function(x, ...) print.dp_result(x)

#' @rdname dp_compare
#' @export
summary.dp_comparison <- function(object, ...) object$table

#' @rdname dp_compare
#' @export
as.data.frame.dp_comparison <- function(x, row.names = NULL, optional = FALSE, ...) x$frame

#' @rdname dp_compare
#' @export
plot.dp_comparison <- function(x, ...) {
  pairs <- unique(paste(x$frame$var1, "~", x$frame$var2))
  parts <- split(x$frame, factor(x$frame$result, x$names))
  bounds <- lapply(parts, function(part) cbind(part$lower, part$upper))
  title <- paste0(100 * x$prob, "% intervals", alarm(x$private))
  forest_many(lapply(parts, `[[`, "estimate"), bounds, pairs, title, xlim = c(-1, 1), ...)
  invisible(x)
}
