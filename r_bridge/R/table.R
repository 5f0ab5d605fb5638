# Data frames take themselves apart before they cross: doubles, a word for the kind, and the texts of levels.

table_to_python <- function(data, columns = NULL, id = NULL) {
  if (!is.data.frame(data)) stop("`data` must be a data.frame, not ", class(data)[1], call. = FALSE)
  if (!is.null(id) && !(is.character(id) && length(id) == 1 && id %in% names(data))) {
    stop("`id` must be the name of one column of `data`", call. = FALSE)
  }
  needed <- seq_along(data)
  if (!is.null(id)) needed <- setdiff(needed, match(id, names(data)))
  # With an unknown name all columns cross, so that the error can name near matches.
  if (!is.null(columns) && all(columns %in% names(data)) && !anyDuplicated(names(data))) {
    needed <- match(columns, names(data))
  }
  list(
    columns = lapply(needed, function(j) column_to_python(data[[j]], names(data)[j])),
    id = if (!is.null(id)) column_to_python(data[[id]], id),
    labels = labels_to_python(column_labels(data)),
    filters = as.list(attr(data, "dp_filters")),
    round_to = attr(data, "dp_round_to")
  )
}

column_to_python <- function(x, name) {
  if (is.list(x) || length(dim(x)) > 1 || is.complex(x)) {
    stop("column '", name, "' is a ", class(x)[1], "; only vectors of numbers, logicals, factors and texts cross",
      call. = FALSE
    )
  }
  kind <- column_kind(x)
  levels <- switch(kind,
    ordered = ,
    factor = levels(x),
    text = unique(as.character(x[!is.na(x)])),
    character()
  )
  list(name = name, kind = kind, values = column_values(x, kind, levels, name), levels = as.list(levels))
}

column_kind <- function(x) {
  if (is.ordered(x)) return("ordered")
  if (is.factor(x)) return("factor")
  if (inherits(x, c("Date", "POSIXt", "difftime"))) return("date")
  if (is.character(x)) return("text")
  if (inherits(x, "integer64")) return("integer")
  switch(typeof(x), logical = "logical", integer = "integer", double = "double", "text")
}

# Missing values are NaN on the way: NA integers and NA logicals would be changed by reticulate.
column_values <- function(x, kind, levels, name) {
  values <- switch(kind,
    text = as.double(match(as.character(x), levels)),
    integer = whole_numbers(x, name),
    date = if (inherits(x, "Date")) 86400 * as.double(x) else as.double(x),
    as.double(unclass(x))
  )
  values[is.na(values)] <- NaN
  attributes(values) <- NULL
  values
}

whole_numbers <- function(x, name) {
  if (!inherits(x, "integer64")) return(as.double(unclass(x)))
  if (!isNamespaceLoaded("bit64")) {
    stop("column '", name, "' is integer64: load the package bit64 first", call. = FALSE)
  }
  values <- as.double(x)
  if (any(abs(values) > 2^53, na.rm = TRUE)) {
    stop("column '", name, "' has integers beyond 2^53, which R's doubles would change", call. = FALSE)
  }
  values
}

column_labels <- function(data) {
  labels <- lapply(data, function(x) attr(x, "label", exact = TRUE))
  labels <- labels[vapply(labels, function(x) is.character(x) && length(x) == 1 && nzchar(x), NA)]
  stats::setNames(as.character(unlist(labels)), names(labels))
}

# Labels cross as two lists of texts: the names of a list would pass through the locale's encoding.
labels_to_python <- function(labels) list(names = as.list(names(labels)), texts = as.list(unname(labels)))

labels_from_python <- function(labels) {
  stats::setNames(as.character(unlist(labels$texts)), as.character(unlist(labels$names)))
}

frame_from_python <- function(columns) {
  values <- lapply(columns, column_from_python)
  names(values) <- vapply(columns, function(column) column$name, "")
  structure(values, class = "data.frame", row.names = .set_row_names(length(values[[1]])))
}

column_from_python <- function(column) {
  values <- unlist(column$values)
  if (column$kind == "text") {
    values <- as.character(values)
    values[as.logical(unlist(column$missing))] <- NA
    return(values)
  }
  values <- as.double(values)
  values[is.nan(values)] <- NA
  if (column$kind == "logical") as.logical(values) else values
}
