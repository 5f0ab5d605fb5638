ranks_in_python <- function(data, columns = NULL) {
  plan <- door("erl_plan", table_to_python(data, columns), as_names(columns), list(seed = 1))
  matrix(unlist(plan$codes), nrow(data), dimnames = list(NULL, unlist(plan$variables)))
}

dense <- function(x) {
  x <- if (is.factor(x)) as.integer(x) else as.double(x)
  match(x, sort(unique(x))) - 1
}

test_that("every kind of column, missing cells and odd names arrive intact", {
  needs_python()
  set.seed(1)
  data <- odd_table()
  ranks <- ranks_in_python(data)
  expect_equal(colnames(ranks), names(data))
  ranks[is.nan(ranks)] <- NA
  for (name in names(data)) expect_equal(ranks[, name], dense(data[[name]]), info = name)
})

test_that("types arrive as what they are", {
  needs_python()
  set.seed(1)
  data <- odd_table()
  data$site <- factor(sample(c("a", "b"), nrow(data), TRUE))
  data$note <- sample(c("x", NA, "y"), nrow(data), TRUE)
  data$day <- as.Date("2020-01-01") + seq_len(nrow(data))
  report <- dp_preflight(data)
  expect_equal(
    report$table$dtype[1:6], c("float64", "Int64", "boolean", "category", "float64", "Int64")
  )
  expect_equal(report$table$missing, vapply(data, function(x) sum(is.na(x)), 1), ignore_attr = TRUE)
  refused <- report$problems$column[report$problems$code == "dtype"]
  expect_true(all(c("site", "note", "day") %in% refused))
  expect_false(report$ok)
  expect_output(print(report), "Confidential")
  expect_identical(summary(report), report$problems)
})

test_that("whole numbers cross exactly up to 2^53", {
  needs_python()
  big <- 2^53 - c(0, 2, 1, 3)
  expect_equal(ranks_in_python(data.frame(a = big, b = c(3, 1, 2, 5)))[, "a"], c(3, 1, 2, 0))
  expect_equal(ranks_in_python(data.frame(a = c(2147483647L, NA, -5L, 0L), b = c(1, 2, 4, 3)))[, "a"], c(2, NaN, 0, 1))
})

test_that("columns that cannot cross are refused by name", {
  data <- data.frame(a = 1:3)
  data$b <- list(1, 2, 3)
  expect_error(table_to_python(data), "column 'b' is a list")
  data$b <- c(1i, 2, 3)
  expect_error(table_to_python(data), "column 'b' is a complex")
  data$b <- matrix(1:6, 3)
  expect_error(table_to_python(data), "column 'b' is a matrix")
  data$b <- structure(c(1, 2, 3), class = "integer64")
  skip_if(isNamespaceLoaded("bit64"), "bit64 is loaded, so integer64 can cross")
  expect_error(table_to_python(data), "integer64")
})

test_that("the id is one column and none of the variables", {
  needs_python()
  set.seed(1)
  data <- odd_table()
  expect_error(table_to_python(data, id = "nobody"), "`id` must be the name")
  expect_error(table_to_python(as.list(data)), "must be a data.frame")
  expect_false("id" %in% dp_preflight(data, id = "id")$table$column)
  data$id[2] <- data$id[1]
  expect_true("duplicate_ids" %in% dp_preflight(data, id = "id")$problems$code ||
    any(grepl("duplicate", dp_preflight(data, id = "id")$problems$message)))
})

test_that("labels travel", {
  needs_python()
  set.seed(1)
  data <- odd_table()
  posterior <- dp_erl(data, names(data)[c(1, 5)], engine = "native", draws = 300, seed = 1)
  expect_equal(posterior$labels[["Gr\u00f6\u00dfe"]], "Height, \u00b5m")
})
