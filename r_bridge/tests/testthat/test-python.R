test_that("loading the package starts no Python", {
  code <- "loadNamespace('dpsurvey'); cat(reticulate::py_available())"
  paths <- paste(.libPaths(), collapse = .Platform$path.sep)
  out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)),
    stdout = TRUE, env = paste0("R_LIBS=", shQuote(paths))
  )
  expect_equal(utils::tail(out, 1), "FALSE")
})

test_that("versions of both sides are told", {
  needs_python()
  versions <- dp_versions()
  expect_true(all(c("R", "reticulate", "python", "dpsurvey", "numpy", "pandas") %in% names(versions)))
  expect_equal(versions[["R"]], as.character(getRversion()))
})

test_that("without the Python package the error says what to do", {
  code <- paste(
    "e <- tryCatch(dpsurvey::dp_versions(), error = function(e) e);",
    "cat(inherits(e, 'dp_no_python'), grepl('dp_install', conditionMessage(e)), dpsurvey::dp_available())"
  )
  bare <- "/usr/bin/python3"
  skip_if_not(file.exists(bare), "no Python of the system's beside the one of dpsurvey")
  has_it <- system2(bare, c("-I", "-c", shQuote("import dpsurvey")), stdout = FALSE, stderr = FALSE) == 0
  skip_if(has_it, "the system's Python has dpsurvey too")
  paths <- paste(.libPaths(), collapse = .Platform$path.sep)
  out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)),
    stdout = TRUE, stderr = FALSE,
    env = c(paste0("R_LIBS=", shQuote(paths)), paste0("RETICULATE_PYTHON=", bare), "PYTHONPATH=")
  )
  expect_equal(utils::tail(out, 1), "TRUE TRUE FALSE")
})

test_that("errors of Python are R errors of their own class", {
  needs_python()
  error <- expect_error(dp_erl(data.frame(a = 1:4, b = rep(1, 4)), engine = "native"), class = "DomainError")
  expect_s3_class(error, "dp_error")
  expect_match(conditionMessage(error), "'b' is constant")
  expect_equal(error$code, "DPS201")
})

test_that("rpy2 is refused inside R, with the way out", {
  needs_python()
  reticulate::py_run_string(paste(
    "import pandas as pd, dpsurvey as dps",
    "try:",
    "    dps.erl(pd.DataFrame({'a': [1, 2, 3, 4], 'b': [2, 1, 4, 3]}), engine='r', progress=False)",
    "    refused = ''",
    "except dps.errors.EngineError as error:",
    "    refused = str(error)",
    sep = "\n"
  ))
  expect_match(reticulate::py$refused, "runs inside R")
  expect_match(reticulate::py$refused, "dp_erl")
})
