# The tests run against the real Python package. Without it they skip, and in continuous integration they fail.
needs_python <- function() {
  if (dp_available()) return(invisible())
  if (nzchar(Sys.getenv("CI"))) stop("the Python package dpsurvey cannot be loaded")
  testthat::skip("the Python package dpsurvey cannot be loaded: dp_install(), or set RETICULATE_PYTHON")
}

# Correlated columns of every kind that crosses, some missing, some with odd names.
odd_table <- function(n = 80) {
  z <- matrix(rnorm(n * 6), n) %*% chol(0.5 + diag(0.5, 6))
  data <- data.frame(
    `body mass` = z[, 1],
    `Kcal vs Fat` = as.integer(round(3 * z[, 2])),
    `a*b` = z[, 3] > 0,
    `y ~ x` = cut(z[, 4], c(-Inf, -1, 1, Inf), c("low", "mid", "high"), ordered_result = TRUE),
    Height = structure(round(z[, 5], 1), label = "Height, \u00b5m"),
    id = sample(10 * n, n),
    check.names = FALSE
  )
  names(data)[5] <- "Gr\u00f6\u00dfe"
  data[["Kcal vs Fat"]][2] <- NA
  data[["a*b"]][3] <- NA
  data[["y ~ x"]][4] <- NA
  data[[5]][5] <- NA
  data
}

complete_table <- function(n = 200) {
  z <- matrix(rnorm(n * 3), n) %*% chol(matrix(c(1, 0.7, 0.3, 0.7, 1, 0.2, 0.3, 0.2, 1), 3))
  data.frame(Kcal = exp(z[, 1]), Grain = z[, 2], Sugar = round(z[, 3], 1))
}
