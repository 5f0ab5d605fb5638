#' Read survey files
#'
#' Reads SAS transport files (.xpt), SAS data sets (.sas7bdat), .csv and .parquet, merges several one-to-one on
#' the id, and refuses what cannot be read faithfully. Zeros are zeros, cut files are errors.
#'
#' @param paths character vector of files.
#' @param on name of the id, which becomes the first column.
#' @param columns columns to keep, in order; names rename: `c(Kcal = "DR1TKCAL")`.
#' @param missing_codes named list: column of the file to the codes that become `NA`.
#' @param where declared subpopulation rule in pandas query syntax, such as `"RIDAGEYR >= 20"`; published with
#'   releases.
#' @param round_to decimals to round to, or `NULL`.
#' @param encoding encoding of texts, or `NULL` for the file's own.
#' @return a data.frame; labels are the columns' attribute `"label"`. The declared rule and rounding travel in
#'   attributes of the data.frame into releases, where R's subsetting keeps them.
#' @export
#' @examplesIf dp_available()
#' file <- tempfile(fileext = ".csv")
#' write.csv(data.frame(SEQN = 1:3, BMI = c(22.5, NA, 31)), file, row.names = FALSE)
#' dp_read_survey(file, on = "SEQN")
dp_read_survey <- function(paths, on = NULL, columns = NULL, missing_codes = NULL, where = NULL, round_to = NULL,
                           encoding = NULL) {
  if (!is.null(names(columns))) {
    new_names <- ifelse(names(columns) == "", columns, names(columns))
    columns <- stats::setNames(as.list(new_names), columns)
  }
  options <- list(
    on = on, columns = columns, missing_codes = missing_codes, where = where, round_to = round_to,
    encoding = encoding
  )
  answer <- door("read_survey", as.list(path.expand(paths)), Filter(Negate(is.null), options))
  data <- frame_from_python(answer$columns)
  labels <- labels_from_python(answer$labels)
  for (name in intersect(names(labels), names(data))) attr(data[[name]], "label") <- labels[[name]]
  attr(data, "dp_filters") <- as.character(unlist(answer$filters))
  attr(data, "dp_round_to") <- answer$round_to
  data
}

#' List every problem of a table before anything is spent
#'
#' A tool for the data holder, outside the privacy guarantee: its counts and shares are exact. Nothing of it
#' enters a release. Choosing columns or rows by what it shows lets the release depend on the data.
#'
#' @param data a data.frame, one row a person.
#' @param columns the variables; all columns by default.
#' @param id name of the column that identifies persons, or `NULL`.
#' @return a `dp_preflight`: `ok`, `problems` (a data.frame with kind, column, code, message) and `table` (one
#'   row a column: missing, distinct values, share tied at the median, ...).
#' @export
#' @examplesIf dp_available()
#' dp_preflight(data.frame(Kcal = c(2000, NA, 1800, 2100), Sex = c("m", "f", "m", "f")))
dp_preflight <- function(data, columns = NULL, id = NULL) {
  answer <- door("preflight", table_to_python(data, columns, id), as_names(columns))
  problems <- data.frame(
    kind = as.character(unlist(answer$kind)),
    column = as.character(unlist(answer$column)),
    code = as.character(unlist(answer$code)),
    message = as.character(unlist(answer$message))
  )
  structure(
    list(ok = answer$ok, problems = problems, table = frame_from_python(answer$table), text = answer$text),
    class = "dp_preflight"
  )
}

#' @export
print.dp_preflight <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @export
summary.dp_preflight <- function(object, ...) object$problems

#' @export
as.data.frame.dp_preflight <- function(x, ...) x$table

# A vector of names crosses as a list, or it would be a scalar where there is one.
as_names <- function(columns) {
  if (is.null(columns)) NULL else as.list(as.character(columns))
}
