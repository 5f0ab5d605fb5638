test_that("the R engine agrees with the native one on odd tables", {
  needs_python()
  set.seed(2)
  data <- odd_table(60)
  data$id <- NULL
  options <- list(data, plugin_threshold = 20, seed = 3)
  in_r <- suppressWarnings(do.call(dp_erl, c(options, engine = "r", draws = 800, burn_in = 100, chains = 2)))
  native <- suppressWarnings(do.call(dp_erl, c(options, engine = "native", draws = 4000)))
  expect_equal(in_r$engine, "r")
  expect_equal(in_r$variables, names(data))
  expect_false(in_r$private)
  expect_output(print(in_r), "NOT PRIVATE")
  sd <- apply(pair_draws(native), 2, sd)
  expect_lt(max(abs(coef(in_r) - coef(native)) / sd), 0.5)
})

test_that("R's generator is left as it was", {
  needs_python()
  set.seed(1)
  data <- complete_table(50)
  set.seed(5)
  expected <- runif(1)
  set.seed(5)
  dp_erl(data, engine = "r", draws = 20, plugin_threshold = 10, seed = 1)
  expect_equal(runif(1), expected)
})

test_that("without a seed the draws follow set.seed", {
  needs_python()
  set.seed(1)
  data <- complete_table(50)
  draw <- function() dp_erl(data, engine = "native", draws = 20, plugin_threshold = 10)$values
  set.seed(7)
  first <- draw()
  set.seed(7)
  expect_identical(draw(), first)
  expect_false(identical(draw(), first))
})

test_that("engines are chosen and named", {
  needs_python()
  data <- complete_table(50)
  found <- requireNamespace("sbgcop", quietly = TRUE)
  expect_message(fit <- dp_erl(data, draws = 50, plugin_threshold = 10, seed = 1), if (found) "sbgcop" else "\"r\"")
  expect_equal(fit$engine, if (found) "sbgcop" else "r")
  if (!found) expect_error(dp_erl(data, engine = "sbgcop"), "not installed")
})

test_that("the package sbgcop runs in R itself", {
  needs_python()
  skip_if_not_installed("sbgcop")
  set.seed(1)
  data <- complete_table()
  ours <- dp_erl(data, engine = "native", draws = 4000, seed = 1)
  theirs <- dp_erl(data, engine = "sbgcop", draws = 1000, seed = 1)
  expect_lt(max(abs(coef(ours) - coef(theirs))), 0.01)
  expect_match(theirs$info, "sbgcop")
})

test_that("slow chains in R are warned of", {
  needs_python()
  set.seed(1)
  expect_warning(
    dp_erl(complete_table(30), engine = "r", draws = 20, burn_in = 0, plugin_threshold = Inf, seed = 1),
    class = "SlowMixingWarning"
  )
})

test_that("settings are checked before R samples", {
  needs_python()
  data <- complete_table(30)
  expect_error(dp_erl(data, engine = "r", draws = 0), class = "ArgumentError")
  expect_error(dp_erl(data, engine = "r", S0 = diag(2)), class = "ArgumentError")
  expect_error(dp_erl(data, engine = "r", n0 = 1), class = "ArgumentError")
  expect_error(dp_erl(data["Kcal"], engine = "r"), class = "DomainError")
})
