#' Spend privacy budget and release noisy counts
#'
#' The result is epsilon-differentially private for substituting one row by another, n being public. It is all
#' that [dp_bayes_na()] and [dp_mle_nn()] need, and it may leave the building: one release serves both, at no
#' further cost.
#'
#' The noise comes from the operating system. [set.seed()] does not reach it, and calling again gives another
#' release and spends epsilon again; with a ledger that is refused while the saved file of the first is there,
#' unless `again` says so.
#'
#' @param data a data.frame of complete rows, one a person: numbers, logicals or ordered factors.
#' @param epsilon privacy loss of the whole release, over all pairs.
#' @param columns the variables, two or more; all columns by default.
#' @param id name of the column that identifies persons (recommended: ties are broken by keys that follow the
#'   id), or `NULL` for the row's position.
#' @param statistic what is counted for each pair: `"concordance"` (pairs of rows that two variables order
#'   differently), `"quadrant"` (rows high in both after splits at the medians, as in the paper), or `"auto"`, what
#'   [dp_plan()] expects to give the shortest intervals.
#' @param mechanism how noise is added: `"linf"` (jointly), `"geometric"` (independently, as in the paper), `"rgm"`
#'   (range-preserving), `"gaussian"` (needs `delta`), or `"auto"`, the best of those with `delta = 0`.
#' @param coarse columns declared to have few levels, whose pairs are quadrant counts; by default the logicals and
#'   ordered factors.
#' @param key_seed seed of the tie-breaking keys, the same in all releases of a data set; public. `NULL` takes
#'   the default.
#' @param ledger path of a budget file made by [dp_ledger()]; without one a warning says that nothing keeps
#'   count.
#' @param delta above 0, such as `1e-6`, for Gaussian noise alone; the ledger must have been made with a delta.
#' @param again spend epsilon on another draw of a release that was made and saved before.
#' @return a `dp_release`: `json` (the release itself), `variables`, `n`, `epsilon`, `counts` (a data.frame of
#'   noisy counts) and `statement` (a paragraph for a methods section).
#' @export
#' @examplesIf dp_available()
#' ledger <- tempfile(fileext = ".json")
#' dp_ledger(ledger, dataset = "cars", budget = 2)
#' release <- dp_release(mtcars[c("mpg", "wt", "hp")], epsilon = 1, ledger = ledger)
#' release
#' cat(release$statement)
dp_release <- function(data, epsilon, columns = NULL, id = NULL, statistic = "auto", mechanism = "auto",
                       coarse = NULL, delta = 0, key_seed = NULL, ledger = NULL, again = FALSE) {
  options <- list(
    columns = as_names(columns), statistic = statistic, mechanism = mechanism,
    coarse = as_names(coarse), delta = delta,
    key_seed = if (!is.null(key_seed)) format(key_seed, scientific = FALSE, digits = 22),
    ledger = if (!is.null(ledger)) path.expand(ledger), again = again
  )
  answer <- withCallingHandlers(
    door("release", table_to_python(data, columns, id), epsilon, Filter(Negate(is.null), options)),
    NoLedgerWarning = function(w) {
      warning(warningCondition(
        "no ledger: nothing keeps count of the privacy spent on these data; make one with dp_ledger()",
        class = c("no_ledger", "dp_warning")
      ))
      invokeRestart("muffleWarning")
    }
  )
  new_release(answer)
}

new_release <- function(answer) {
  structure(
    list(
      json = answer$json, variables = unlist(answer$variables), n = answer$n, epsilon = answer$epsilon,
      secure = answer$secure, counts = frame_from_python(answer$counts), statement = answer$statement,
      text = answer$text
    ),
    class = "dp_release"
  )
}

#' Make a budget file
#'
#' Each [dp_release()] that is given its path reserves epsilon there before anything is computed, and is refused
#' when too little is left.
#'
#' @param path file to make; it must not exist.
#' @param dataset name of the data set.
#' @param budget total epsilon that may be spent.
#' @param delta total delta that may be spent, or at which zCDP converts; with 0, Gaussian noise is refused.
#' @param accounting `"pure"` adds up epsilon and delta; `"zcdp"` adds up rho of zero-concentrated privacy and
#'   converts it to epsilon at `delta`. Fixed for good.
#' @return `path`, invisibly.
#' @export
#' @examplesIf dp_available()
#' dp_ledger(tempfile(fileext = ".json"), dataset = "diet", budget = 3)
dp_ledger <- function(path, dataset, budget, delta = 0, accounting = "pure") {
  message(door("create_ledger", path.expand(path), dataset, budget, delta, accounting))
  invisible(path)
}

#' Save and read a release
#'
#' The file is JSON, the same that Python writes; it is checked strictly when read. Where the release was made with
#' a ledger in this session, the ledger notes the file, so that the same release is not made again by mistake.
#'
#' @param release a `dp_release`.
#' @param path the file.
#' @return `dp_write_release()` returns `path`, invisibly; `dp_read_release()` a `dp_release`.
#' @export
#' @examplesIf dp_available()
#' release <- suppressWarnings(dp_release(mtcars[c("mpg", "wt")], epsilon = 1))
#' path <- dp_write_release(release, tempfile(fileext = ".json"))
#' identical(dp_read_release(path)$counts, release$counts)
dp_write_release <- function(release, path) {
  check_class(release, "dp_release")
  door("write_release", release$json, path.expand(path))
  invisible(path)
}

#' @rdname dp_write_release
#' @export
dp_read_release <- function(path) new_release(door("read_release", path.expand(path)))

#' @export
print.dp_release <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @export
summary.dp_release <- function(object, ...) {
  cat(strwrap(object$statement, 100), sep = "\n")
  invisible(object)
}

#' @export
as.data.frame.dp_release <- function(x, ...) x$counts

check_class <- function(x, class) {
  if (!inherits(x, class)) {
    stop("expected a ", paste(class, collapse = " or "), ", got a ", class(x)[1], call. = FALSE)
  }
}
